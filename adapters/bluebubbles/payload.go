package bluebubbles

import "parley/ingest/event"

// The types of webhooks that carry a message and are read here; every other
// type is no event of ours.
// See https://docs.bluebubbles.app/server/developer-guides/rest-api-and-webhooks.
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

// payload is a webhook's body, read: what it means, and the message it carries.
type payload struct {
	kind event.Kind
	// ignored is the reason why nothing is to be recorded; only guid is read
	// then, and it is empty for what is no event at all.
	ignored string
	guid    string
	message
	tapback tapback // of kind reaction
}

// read says what a body means. An error means that it can't be used, and names
// every field at fault.
func read(body []byte) (payload, error) {
	root, err := readObject(body)
	if err != nil {
		return payload{}, err
	}
	webhook := root.text("type")
	p, known := readWebhook(root, webhook)
	if !known {
		return payload{kind: event.KindOther, ignored: event.ReasonNotAnEvent}, nil
	}
	return p, root.err()
}

func readWebhook(root object, webhook string) (p payload, known bool) {
	switch webhook {
	case newMessage, updatedMessage, messageSendError:
		if data, ok := requiredData(root); ok {
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

func requiredData(root object) (object, bool) {
	before := len(*root.faults)
	data, ok := root.child("data")
	if !ok && len(*root.faults) == before {
		root.fault("data", "is required and must be an object")
	}
	return data, ok
}

func readGroupEvent(root object, kind event.Kind, reason string) payload {
	p := payload{kind: kind, ignored: reason}
	if data, ok := requiredData(root); ok {
		p.guid = data.requiredID("guid")
	}
	return p
}

func readData(data object, webhook string) payload {
	p := payload{guid: data.requiredID("guid")}
	item, _ := data.number("itemType")
	action, _ := data.number("groupActionType")
	if item != 0 {
		p.kind, p.ignored = groupItem(item, action)
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
		// Without a chat a message can't be placed; if it is known, this is how
		// it stands now.
		p.kind = event.KindEdit
	}
	return p
}

// groupItem says what an item that nobody typed tells, from Messages' own
// numbers: 1 somebody was added or removed, 2 the name changed, 3 somebody left
// (action 0) or the picture changed; others are notices such as a shared location.
func groupItem(item, action int64) (event.Kind, string) {
	switch {
	case item == 1, item == 3 && action == 0:
		return event.KindMember, event.ReasonMember
	case item == 2, item == 3:
		return event.KindOther, event.ReasonGroupEvent
	}
	return event.KindOther, event.ReasonSystemMessage
}
