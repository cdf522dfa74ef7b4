package bridge

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"parley/adapters"
	"parley/adapters/web/payload"
	"parley/ingest/event"
)

// The types of the program's requests.
const (
	typeMessage  = "message"
	typeEdit     = "edit"
	typeDelete   = "delete"
	typeReaction = "reaction"
	typePress    = "press"
)

// members are the members that each type of request has beside type and id.
var members = map[string][]string{
	typeMessage:  {"channel", "thread", "reply_to", "content", "mentioned", "passive", "sent_at", "metadata", "attachments", event.DispatchType, event.DispatchConfig},
	typeEdit:     {"content", "mentioned", "sent_at"},
	typeDelete:   {},
	typeReaction: {"emoji", "removed", "sent_at", "metadata"},
	typePress:    {"channel", "thread", "post", "button", "content", "sent_at", "metadata"},
}

// The greatest lengths of ids and names, in bytes.
const maxID, maxEmoji = 200, 100

// request is a request of the program.
type request struct {
	payload.Body // content, metadata, passive, attachments and dispatch
	kind         string
	id           string
	channel      struct {
		ID   string `json:"id"`
		Type string `json:"type"`
	}
	thread, replyTo, post, button, emoji string
	mentioned, removed                   bool
	sentAt                               time.Time

	said event.Metadata // the metadata as it is stored
}

// read reads the body of a request to a workspace. Its error is event.FieldErrors and names every fault.
func read(workspace string, raw []byte) (q request, err error) {
	object, err := event.ReadObject(raw)
	if object == nil && err != nil {
		return q, event.FieldErrors{{Field: payload.Whole, Message: err.Error()}}
	}
	q.kind = typeMessage
	for _, m := range object { // the type says which other members there are
		if m.Key == "type" && (payload.Text(m.Value, &q.kind) != "" || members[q.kind] == nil) {
			return q, event.FieldErrors{{Field: "type", Message: "must be message, edit, delete, reaction or press"}}
		}
	}
	given := map[string]bool{}
	faults := payload.Members(raw, func(m event.Extra) string {
		given[m.Key] = true
		switch {
		case m.Key == "type":
			return ""
		case m.Key != "id" && !slices.Contains(members[q.kind], m.Key):
			return fmt.Sprintf("is not a key of this request; the known keys of the type %s are id, %s", q.kind, strings.Join(members[q.kind], ", "))
		case m.Key != "id" && m.Key != "content" && string(m.Value) == "null":
			given[m.Key] = false
			return ""
		}
		return q.set(m)
	})
	for _, key := range []string{"id", "channel", "content", "metadata", "emoji", "post", "button"} {
		needed := key == "id" || slices.Contains(members[q.kind], key) && (key != "content" || q.kind != typePress)
		faults.Check(!needed || given[key], key, "is required")
	}
	if q.Metadata != nil {
		faults = append(faults, q.attribute(workspace)...)
	}
	for i, a := range q.Attachments {
		faults.Check(a.URL == "", fmt.Sprintf("attachments[%d].url", i), "must be left out: send the bytes as data")
	}
	return q, faults.Err()
}

// set reads one member. It returns the fault's text, or "".
func (q *request) set(m event.Extra) string {
	switch m.Key {
	case "id":
		return name(m.Value, &q.id, maxID)
	case "channel":
		if json.Unmarshal(m.Value, &q.channel) != nil || !isName(q.channel.ID, maxID) || !slices.Contains(channelTypes, q.channel.Type) {
			return `must be {"id","type"}, with an id of 1 to 200 bytes without control characters and the type room, group or direct`
		}
	case "thread":
		return name(m.Value, &q.thread, maxID)
	case "reply_to":
		return name(m.Value, &q.replyTo, maxID)
	case "post":
		return name(m.Value, &q.post, maxID)
	case "button":
		if fault := name(m.Value, &q.button, maxID); fault != "" || !strings.HasPrefix(q.button, adapters.ButtonPrefix) {
			return "must be the id of a button, as the post has it"
		}
	case "emoji":
		return name(m.Value, &q.emoji, maxEmoji)
	case "mentioned":
		return flag(m.Value, &q.mentioned)
	case "removed":
		return flag(m.Value, &q.removed)
	case "sent_at":
		if json.Unmarshal(m.Value, &q.sentAt) != nil || q.sentAt.Before(earliest) || q.sentAt.After(latest) {
			return "must be a time such as 2026-03-01T12:00:00Z"
		}
	default:
		return q.Set(m, nil)
	}
	return ""
}

var channelTypes = []string{string(event.ChannelRoom), string(event.ChannelGroup), string(event.ChannelDirect)}

// earliest and latest bound the times of messages.
var earliest, latest = time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2199, 1, 1, 0, 0, 0, 0, time.UTC)

// name reads an id of at most so many bytes.
func name(value json.RawMessage, into *string, most int) string {
	if payload.Text(value, into) != "" || !isName(*into, most) {
		return fmt.Sprintf("must be a text of 1 to %d bytes without control characters", most)
	}
	return ""
}

// isName reports whether a text may be an id: no character of it ends a line of the program's protocol.
func isName(s string, most int) bool {
	return s != "" && len(s) <= most && event.Text(s) == s && !strings.ContainsFunc(s, unicode.IsControl)
}

func flag(value json.RawMessage, into *bool) string {
	if json.Unmarshal(value, into) != nil {
		return "must be true or false"
	}
	return ""
}

// attribute makes the stored metadata from the program's, and returns its faults. The program names the author; it
// sets nothing else that Parley trusts.
func (q *request) attribute(workspace string) (faults event.FieldErrors) {
	raw, named := q.Metadata, false
	if given, err := event.ReadObject(raw); err == nil {
		for i, m := range given {
			var id string
			if m.Key == "sender_id" && name(m.Value, &id, maxID) == "" {
				given[i].Value = payload.Encode(senderID(workspace, id))
			} else if m.Key == "sender_id" {
				return event.FieldErrors{{Field: "metadata.sender_id", Message: fmt.Sprintf("must be a text of 1 to %d bytes without control characters", maxID)}}
			}
			named = named || m.Key == "source" && string(m.Value) != "null"
		}
		if !named {
			given = slices.DeleteFunc(given, func(m event.Extra) bool { return m.Key == "source" })
			given = append([]event.Extra{{Key: "source", Value: payload.Encode(string(event.Bridge))}}, given...)
		}
		raw = event.WriteObject(given)
	}
	m, faults := payload.ParseMetadata(raw)
	if len(faults) > 0 {
		return faults
	}
	faults = m.RefusedTo(event.Bridging)
	m.ChannelExternalID = q.channel.ID
	m.Extra = append(m.Extra, q.Dispatch...)
	m.Edited()
	q.said = m
	return faults
}
