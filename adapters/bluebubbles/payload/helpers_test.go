package payload_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"parley/adapters"
	"parley/adapters/bluebubbles/payload"
	"parley/ingest/event"
)

const (
	guid    = "5D1E0C2A-7B1F-4E55-9A60-0000000000FF"
	nora    = "+15555550142"
	owner   = "+15555550100"
	direct  = "iMessage;-;" + nora
	group   = "iMessage;+;chat640021977"
	oneself = "iMessage;-;" + owner
)

// fields holds the members of a webhook's message; nil becomes null.
type fields map[string]any

// with returns a copy of f with other values for some members.
func (f fields) with(more fields) fields {
	all := maps.Clone(f)
	maps.Copy(all, more)
	return all
}

// in puts the message into a chat.
func (f fields) in(chat string, style int) fields {
	return f.with(fields{"chats": []any{fields{"guid": chat, "style": style}}})
}

// hello returns Nora's message in the direct chat with her.
func hello() fields {
	return fields{
		"guid": guid, "text": "hello", "isFromMe": false, "dateCreated": 1790000000000,
		"handle": fields{"address": nora},
	}.in(direct, 45)
}

// mine returns the same message from the account's owner.
func mine() fields { return hello().with(fields{"isFromMe": true, "handle": nil}) }

// update returns f without its chat, as in an updated-message.
func (f fields) update() fields {
	update := maps.Clone(f)
	delete(update, "chats")
	return update
}

func webhook(t testing.TB, kind string, data any) event.Envelope {
	t.Helper()
	body, err := json.Marshal(map[string]any{"type": kind, "data": data})
	if err != nil {
		t.Fatal(err)
	}
	return envelope(body)
}

func envelope(body []byte) event.Envelope {
	return event.Envelope{Workspace: "home", Platform: event.BlueBubbles, Transport: "webhook", Body: body}
}

// keys returns the keys without the parsed form of the body.
func keys(t testing.TB, kind string, data fields) event.Keys {
	t.Helper()
	k := payload.Normalizer{}.Keys(webhook(t, kind, data), contacts{})
	k.Parsed = nil
	return k
}

func normalize(t testing.TB, kind string, data fields, directory adapters.Directory) event.Event {
	t.Helper()
	e, err := payload.Normalizer{}.Normalize(t.Context(), webhook(t, kind, data), directory)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func message(t testing.TB, kind string, data fields, directory adapters.Directory) *event.Message {
	t.Helper()
	e := normalize(t, kind, data, directory)
	if e.Message == nil {
		t.Fatalf("the event %s has no message", e.Kind)
	}
	return e.Message
}

// contacts is an adapters.Directory: the names that a server knows, and our identity there.
type contacts struct {
	names map[string]string
	self  event.Self
	asked func(address string)
}

func (c contacts) Self() event.Self                     { return c.self }
func (c contacts) ChannelType(string) event.ChannelType { return event.ChannelUnknown }
func (c contacts) State() adapters.State                { return nil }
func (c contacts) User(_ context.Context, address string) (adapters.User, bool) {
	if c.asked != nil {
		c.asked(address)
	}
	name, ok := c.names[address]
	return adapters.User{DisplayName: name}, ok
}

// recording reads a file of recorded envelopes and the directory lines among them.
func recording(t testing.TB, name string) ([]event.Envelope, contacts) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "..", "testdata", "bluebubbles", name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	known := contacts{names: map[string]string{}}
	var envelopes []event.Envelope
	lines := bufio.NewScanner(bytes.NewReader(raw))
	lines.Buffer(nil, len(raw)+1)
	for lines.Scan() {
		var line struct {
			Workspace string
			Body      json.RawMessage
			Directory struct {
				Users []struct {
					ID   string
					Name string `json:"display_name"`
				}
				Self event.Self
			}
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		if line.Body == nil {
			known.self = line.Directory.Self
			for _, user := range line.Directory.Users {
				known.names[user.ID] = user.Name
			}
			continue
		}
		e := envelope(line.Body)
		e.Workspace = line.Workspace
		envelopes = append(envelopes, e)
	}
	return envelopes, known
}
