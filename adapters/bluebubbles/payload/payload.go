package payload

import (
	"parley/adapters"
	"parley/adapters/jsonobject"
	"parley/ingest/event"
)

// The types of webhooks that contain a message and are read here. Every other type is
// ignored.
// https://docs.bluebubbles.app/server/developer-guides/rest-api-and-webhooks
const (
	NewMessage         = "new-message"
	UpdatedMessage     = "updated-message"
	MessageSendError   = "message-send-error"
	participantAdded   = "participant-added"
	participantRemoved = "participant-removed"
	participantLeft    = "participant-left"
	groupNameChange    = "group-name-change"
	groupIconChanged   = "group-icon-changed"
	groupIconRemoved   = "group-icon-removed"
)

// Payload is a decoded webhook body.
type Payload struct {
	Kind   event.Kind
	GUID   string
	Dedupe string // the dedupe key
	Err    error  // names every faulty field; nil if the body is usable
	Message
	tapback tapback // of a reaction
	webhook string  // its type
	// ignored is the reason for recording nothing. Of a message, only GUID, Row and Created
	// are set then; they are empty if the webhook is not an event.
	ignored string
}

// Parse returns the envelope's Parsed, or reads its body.
func Parse(envelope event.Envelope) *Payload {
	if p, ok := envelope.Parsed.(*Payload); ok {
		return p
	}
	p, err := read(envelope.Body)
	if p.Err = err; err == nil {
		p.Dedupe = p.key(envelope.Body)
	} else {
		p.Dedupe = adapters.BodyKey(envelope.Body)
	}
	return &p
}

// read decodes a body. Its error means that the body is unusable, and names every faulty
// field.
func read(body []byte) (Payload, error) {
	root, err := jsonobject.Parse(body)
	if err != nil {
		return Payload{}, err
	}
	webhook := root.Text("type")
	p, known := readWebhook(root, webhook)
	if !known {
		return Payload{Kind: event.KindOther, ignored: event.ReasonNotAnEvent}, nil
	}
	p.webhook = webhook
	return p, root.Err()
}

func readWebhook(root jsonobject.Fields, webhook string) (p Payload, known bool) {
	switch webhook {
	case NewMessage, UpdatedMessage, MessageSendError:
		if data, ok := root.RequiredChild("data"); ok {
			p = readData(data, webhook)
		}
	case participantAdded, participantRemoved, participantLeft:
		p = readGroupEvent(root, event.KindMember, event.ReasonMember)
	case groupNameChange, groupIconChanged, groupIconRemoved:
		p = readGroupEvent(root, event.KindOther, event.ReasonGroupEvent)
	default:
		return p, false
	}
	return p, true
}

func readGroupEvent(root jsonobject.Fields, kind event.Kind, reason string) Payload {
	p := Payload{Kind: kind, ignored: reason}
	if data, ok := root.RequiredChild("data"); ok {
		p.GUID = requiredID(data, "guid")
	}
	return p
}

func readData(data jsonobject.Fields, webhook string) Payload {
	p := Payload{GUID: requiredID(data, "guid")}
	more := data.Optional()
	if item := data.Number("itemType"); item != 0 {
		p.Kind, p.ignored = groupItem(item, more.Number("groupActionType"))
		p.Row, p.Created = more.Number("originalROWID"), date(more, "dateCreated")
		return p
	}
	if isVote(data) {
		p.Kind, p.ignored = event.KindOther, event.ReasonSystemMessage
		p.Row, p.Created = more.Number("originalROWID"), date(more, "dateCreated")
		return p
	}
	p.Message = readMessage(data)
	isTapback := false
	if webhook != MessageSendError {
		p.tapback, isTapback = readTapback(data, p.text)
	}
	switch {
	case isTapback:
		p.Kind = event.KindReaction
	case webhook != MessageSendError && p.unsent():
		p.Kind = event.KindDelete
	case webhook == NewMessage && p.Chat != nil:
		p.Kind = event.KindMessage
	default:
		// Without a chat, a message has no thread. If the message is known, this is its
		// current state.
		p.Kind = event.KindEdit
	}
	return p
}

// groupItem returns the kind of an item without typed text, and the reason for ignoring it.
// The numbers are Messages' own: item 1 adds or removes a person, item 2 changes the name,
// item 3 is a departure (action 0) or a change of the picture. Others are notices such as a
// shared location.
func groupItem(item, action int64) (event.Kind, string) {
	switch {
	case item == 1, item == 3 && action == 0:
		return event.KindMember, event.ReasonMember
	case item == 2, item == 3:
		return event.KindOther, event.ReasonGroupEvent
	}
	return event.KindOther, event.ReasonSystemMessage
}

// maxID bounds an id in bytes, since it becomes part of a key of the store. BlueBubbles' own
// have less than 100.
const maxID = 512

func id(o jsonobject.Fields, key string) string { return o.ShortText(key, maxID) }

// requiredID is id for a member whose absence is a fault.
func requiredID(o jsonobject.Fields, key string) string {
	if !o.Has(key) || string(o.Raw(key)) == `""` {
		o.Fault(key, "is required and must not be empty")
		return ""
	}
	return id(o, key)
}

// IsRow reports whether the payload is the webhook of a new row of Messages' database.
func (p *Payload) IsRow() bool {
	return p.webhook == NewMessage && p.Row > 0 && (p.Chat != nil || p.ignored != "")
}

// IsPost reports whether the payload is a message of ours that looks like a post: in its chat, with its
// text or its file.
func (p *Payload) IsPost(post adapters.Post) bool {
	return p.Err == nil && p.Kind == event.KindMessage && p.fromMe && ChatName(p.Chat.GUID) == post.To.Channel && p.looksLike(post)
}

// HasLateFile reports whether the payload may be another person's message whose files came after it.
func (p *Payload) HasLateFile() bool {
	return p.Kind == event.KindEdit && !p.fromMe && p.Edited.IsZero() && len(p.attachments) > 0
}
