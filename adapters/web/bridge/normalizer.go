package bridge

import (
	"cmp"
	"context"
	"regexp"

	"parley/adapters"
	"parley/ingest/event"
)

// Normalizer converts the program's requests to events. It has no state.
type Normalizer struct{}

var _ adapters.Normalizer = Normalizer{}

// kinds are the kinds of events by the types of requests.
var kinds = map[string]event.Kind{
	typeMessage: event.KindMessage, typeEdit: event.KindEdit, typeDelete: event.KindDelete, typeReaction: event.KindReaction, typePress: event.KindAction,
}

// Keys implements adapters.Normalizer. The same message is the same id. A repeated change has the same bytes.
func (Normalizer) Keys(envelope event.Envelope, _ adapters.Facts) event.Keys {
	q, err := read(envelope.Workspace, envelope.Body)
	if err != nil {
		return event.Keys{Kind: event.KindOther, Dedupe: adapters.BodyKey(envelope.Body), Result: event.Refuse(err)}
	}
	keys := event.Keys{Kind: kinds[q.kind], MessageID: external(q.id), Dedupe: q.kind + ":" + q.id}
	switch q.kind {
	case typeEdit, typeReaction:
		keys.Dedupe += ":" + adapters.Digest(envelope.Body)
	case typePress, typeMessage:
		keys.Thread, keys.Channel, keys.PostID = threadKey(envelope.Workspace, q.channel.ID, q.thread), q.place(), external(q.post)
	}
	return keys
}

// Normalize implements adapters.Normalizer.
func (Normalizer) Normalize(_ context.Context, envelope event.Envelope, _ adapters.Directory) (event.Event, error) {
	q, err := read(envelope.Workspace, envelope.Body)
	if err != nil {
		return event.Event{}, err
	}
	e := event.Event{Kind: kinds[q.kind]}
	switch q.kind {
	case typeMessage, typePress:
		e.Message = q.message(envelope)
		return e, nil
	case typeEdit:
		e.Message = q.edited(envelope)
	case typeReaction:
		e.Reaction = &event.Reaction{
			Emoji: q.emoji, Removed: q.removed, SenderID: q.said.SenderID, SenderName: q.said.SenderDisplayName, SenderType: q.said.SenderType,
		}
	}
	e.Targets = []string{external(q.id)}
	return e, nil
}

// place returns the channel of a message.
func (q *request) place() event.Channel {
	return event.Channel{ID: q.channel.ID, Type: event.ChannelType(q.channel.Type)}
}

// keyForm is the form of the keys of our posts, which are the ids of posts to which the program has given none.
var keyForm = regexp.MustCompile(`^[a-z0-9]{25}$`)

// message returns the message of a request, or that of a press.
func (q *request) message(envelope event.Envelope) *event.Message {
	m := &event.Message{
		ExternalID: external(q.id), Thread: threadKey(envelope.Workspace, q.channel.ID, q.thread), Channel: q.place(),
		Content: q.Content, Metadata: q.said, SentAt: cmp.Or(q.sentAt, envelope.ReceivedAt), Addressed: q.addressed(), ReplyTo: external(q.replyTo), Passive: q.Passive,
		FollowUp: q.thread != "" && !q.mentioned && q.channel.Type == string(event.ChannelRoom),
	}
	if keyForm.MatchString(q.id) { // the program sends our own post back
		m.OwnKey = q.id
	}
	for _, a := range q.Attachments {
		m.Attachments = append(m.Attachments, a.Event())
	}
	if q.kind == typePress {
		m.Content, m.Pressed = cmp.Or(q.Content, q.button), q.button
	}
	return m
}

// addressed returns how a message addresses us.
func (q *request) addressed() event.Addressed {
	switch {
	case q.kind == typePress:
		return event.AddressedAction
	case q.channel.Type == string(event.ChannelDirect):
		return event.AddressedDirect
	case q.mentioned:
		return event.AddressedMention
	}
	return event.AddressedNone
}

// edited returns the new state of a message. Without a time of its own, an edit is the last one.
func (q *request) edited(envelope event.Envelope) *event.Message {
	at := cmp.Or(q.sentAt, envelope.ReceivedAt)
	m := &event.Message{ExternalID: external(q.id), Content: q.Content, EditedAt: at, Addressed: q.addressed()}
	m.Metadata.Source = string(event.Bridge)
	m.Revision = at.UTC().Format("2006-01-02T15:04:05.000000000")
	m.Dated = len(m.Revision)
	m.Revision += " " + adapters.Digest([]byte(q.Content))
	return m
}
