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
	"parley/adapters/adaptertest"
	"parley/adapters/discord/payload"
	"parley/ingest/event"
)

// The users, the channel and the message of the tests.
const (
	bot     = "900"
	nora    = "201"
	sam     = "202"
	guild   = "1"
	room    = "10"
	sentID  = "1529841438720000000"
	sentAt  = "2026-09-21T14:00:00.250000+00:00"
	revised = "2026-09-21T14:05:00.766195+00:00"
)

// directory is a fixed adapters.Directory.
type directory struct {
	self  event.Self
	users map[string]adapters.User
	state adapters.State // nil for an empty one
}

func (d directory) Self() event.Self                   { return d.self }
func (directory) ChannelType(string) event.ChannelType { return event.ChannelUnknown }
func (d directory) State() adapters.State {
	if d.state == nil {
		return adaptertest.NewState()
	}
	return d.state
}
func (d directory) User(_ context.Context, id string) (adapters.User, bool) {
	user, ok := d.users[id]
	return user, ok
}

var (
	known   = directory{self: event.Self{UserID: bot}}
	unknown directory
)

// fields holds the members of a JSON object.
type fields map[string]any

// with returns a copy of f with other values for some members. It removes a member whose new
// value is nil.
func (f fields) with(more fields) fields {
	out := maps.Clone(f)
	for key, value := range more {
		if out[key] = value; value == nil {
			delete(out, key)
		}
	}
	return out
}

func person(id, username string) fields {
	return fields{"id": id, "username": username, "global_name": nil}
}

// posted returns a message that Nora posted in a guild's channel.
func posted(content string) fields {
	return fields{
		"id": sentID, "channel_id": room, "guild_id": guild, "type": 0, "flags": 0,
		"author": person(nora, "nora"), "content": content,
		"timestamp": sentAt, "edited_timestamp": nil,
		"mentions": []fields{}, "attachments": []fields{},
	}
}

func edited(content string) fields {
	return posted(content).with(fields{"edited_timestamp": revised})
}

func replying(id string, quoted any) fields {
	return fields{
		"type":               19,
		"message_reference":  fields{"type": 0, "channel_id": room, "message_id": id},
		"referenced_message": quoted,
	}
}

func envelope(t testing.TB, frame any) event.Envelope {
	t.Helper()
	body, err := json.Marshal(frame)
	if err != nil {
		t.Fatal(err)
	}
	return event.Envelope{Workspace: "acme", Platform: event.Discord, Transport: "gateway", Body: body}
}

func frame(name string, d any) fields { return fields{"op": 0, "t": name, "s": 7, "d": d} }

func keys(t testing.TB, facts adapters.Facts, name string, d any) event.Keys {
	t.Helper()
	return keysOf(envelope(t, frame(name, d)), facts)
}

func normalize(t testing.TB, d adapters.Directory, name string, data any) event.Event {
	t.Helper()
	e, err := payload.Normalizer{}.Normalize(t.Context(), envelope(t, frame(name, data)), d)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// created returns the message that Normalize makes of a MESSAGE_CREATE if our identity is
// known.
func created(t testing.TB, data fields) *event.Message {
	t.Helper()
	e := normalize(t, known, "MESSAGE_CREATE", data)
	if e.Message == nil {
		t.Fatalf("the event %+v has no message", e)
	}
	return e.Message
}

// recorded is an envelope of a recording with the directory that applies to it.
type recorded struct {
	envelope  event.Envelope
	directory directory
}

func recordings(t testing.TB) []string {
	t.Helper()
	paths, err := filepath.Glob("../../../testdata/discord/*.jsonl")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	return paths
}

// readRecording reads a recording as replay does: a directory line or a READY frame sets our
// identity for the lines below it.
func readRecording(t testing.TB, path string) []recorded {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []recorded
	now := directory{users: map[string]adapters.User{}}
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		var line struct {
			Workspace string
			Body      json.RawMessage
			Directory struct {
				Self event.Self
			}
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if line.Body == nil {
			now.self = line.Directory.Self
			continue
		}
		if self, ok := payload.SelfOf(event.Envelope{Body: line.Body}); ok {
			now.self = self
		}
		all = append(all, recorded{event.Envelope{Workspace: line.Workspace, Platform: event.Discord, Body: line.Body}, now})
	}
	return all
}

// null sets a member to null; with would remove a nil member.
var null = json.RawMessage("null")

// keysOf returns the keys of an envelope without its parsed form.
func keysOf(envelope event.Envelope, facts adapters.Facts) event.Keys {
	k := payload.Normalizer{}.Keys(envelope, facts)
	k.Parsed = nil
	return k
}
