package bluebubbles

import (
	"parley/adapters"
	"parley/adapters/jsonobject"
	"parley/ingest/event"
)

// The types of webhooks that contain a message and are read here. Every other type is
// ignored.
// https://docs.bluebubbles.app/server/developer-guides/rest-api-and-webhooks
const (
	newMessage         = "new-message"
	updatedMessage     = "updated-message"
	messageSendError   = "message-send-error"
	participantAdded   = "participant-added"
	participantRemoved = "participant-removed"
	participantLeft    = "participant-left"
	groupNameChange    = "group-name-change"
	groupIconChanged   = "group-icon-changed"
	groupIconRemoved   = "group-icon-removed"
)

// payload is a decoded webhook body.
type payload struct {
	kind event.Kind
	// ignored is the reason for recording nothing. Of a message, only guid, row and created
	// are set then; they are empty if the webhook is not an event.
	ignored string
	guid    string
	webhook string // its type
	message
	tapback tapback // of a reaction
	dedupe  string  // the dedupe key
	err     error   // names every faulty field; nil if the body is usable
}

// parse returns the envelope's Parsed, or reads its body.
func parse(envelope event.Envelope) *payload {
	if p, ok := envelope.Parsed.(*payload); ok {
		return p
	}
	p, err := read(envelope.Body)
	if p.err = err; err == nil {
		p.dedupe = p.key(envelope.Body)
	} else {
		p.dedupe = adapters.BodyKey(envelope.Body)
	}
	return &p
}

// read decodes a body. Its error means that the body is unusable, and names every faulty
// field.
func read(body []byte) (payload, error) {
	root, err := jsonobject.Parse(body)
	if err != nil {
		return payload{}, err
	}
	webhook := root.Text("type")
	p, known := readWebhook(root, webhook)
	if !known {
		return payload{kind: event.KindOther, ignored: event.ReasonNotAnEvent}, nil
	}
	p.webhook = webhook
	return p, root.Err()
}

func readWebhook(root jsonobject.Fields, webhook string) (p payload, known bool) {
	switch webhook {
	case newMessage, updatedMessage, messageSendError:
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

func readGroupEvent(root jsonobject.Fields, kind event.Kind, reason string) payload {
	p := payload{kind: kind, ignored: reason}
	if data, ok := root.RequiredChild("data"); ok {
		p.guid = requiredID(data, "guid")
	}
	return p
}

func readData(data jsonobject.Fields, webhook string) payload {
	p := payload{guid: requiredID(data, "guid")}
	more := data.Optional()
	if item := data.Number("itemType"); item != 0 {
		p.kind, p.ignored = groupItem(item, more.Number("groupActionType"))
		p.row, p.created = more.Number("originalROWID"), date(more, "dateCreated")
		return p
	}
	if isVote(data) {
		p.kind, p.ignored = event.KindOther, event.ReasonSystemMessage
		p.row, p.created = more.Number("originalROWID"), date(more, "dateCreated")
		return p
	}
	p.message = readMessage(data)
	isTapback := false
	if webhook != messageSendError {
		p.tapback, isTapback = readTapback(data, p.text)
	}
	switch {
	case isTapback:
		p.kind = event.KindReaction
	case webhook != messageSendError && p.unsent():
		p.kind = event.KindDelete
	case webhook == newMessage && p.chat != nil:
		p.kind = event.KindMessage
	default:
		// Without a chat, a message has no thread. If the message is known, this is its
		// current state.
		p.kind = event.KindEdit
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
