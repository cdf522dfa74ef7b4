package payload

import (
	"testing"

	"parley/ingest/event"

	"pgregory.net/rapid"
)

func TestThreadKey(t *testing.T) {
	const ts, root = "1750000000.000200", "1750000000.000100"
	for _, tt := range []struct {
		about    string
		channel  event.Channel
		threadTS string
		want     event.ThreadKey
	}{
		{"a message in a channel is its own root", event.Channel{ID: "C1", Type: event.ChannelRoom}, "", "slack:acme:C1:" + ts},
		{"a root with replies is its own root", event.Channel{ID: "C1", Type: event.ChannelRoom}, ts, "slack:acme:C1:" + ts},
		{"a reply belongs to its root", event.Channel{ID: "C1", Type: event.ChannelRoom}, root, "slack:acme:C1:" + root},
		{"a direct message belongs to the conversation", event.Channel{ID: "D1", Type: event.ChannelDirect}, "", "slack:acme:D1"},
		{"a direct message with replies belongs to the conversation", event.Channel{ID: "D1", Type: event.ChannelDirect}, ts, "slack:acme:D1"},
		{"a direct reply belongs to its root", event.Channel{ID: "D1", Type: event.ChannelDirect}, root, "slack:acme:D1:" + root},
		{"a group message belongs to the conversation", event.Channel{ID: "C1", Type: event.ChannelGroup}, "", "slack:acme:C1"},
		{"a group reply belongs to its root", event.Channel{ID: "C1", Type: event.ChannelGroup}, root, "slack:acme:C1:" + root},
		{"an unknown D is a direct message", event.Channel{ID: "D1"}, "", "slack:acme:D1"},
		{"any other unknown is a room", event.Channel{ID: "G1"}, "", "slack:acme:G1:" + ts},
	} {
		if got := ThreadKey("acme", tt.channel, ts, tt.threadTS); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.about, got, tt.want)
		}
	}
}

func TestParseThreadKeyUndoesThreadKey(t *testing.T) {
	stamps := rapid.StringMatching(`[0-9]{1,12}\.[0-9]{1,9}`)
	rapid.Check(t, func(t *rapid.T) {
		channel := event.Channel{
			ID:   rapid.StringMatching(`[CDG][A-Z0-9]{1,12}`).Draw(t, "channel"),
			Type: rapid.SampledFrom([]event.ChannelType{event.ChannelUnknown, event.ChannelRoom, event.ChannelDirect, event.ChannelGroup}).Draw(t, "type"),
		}
		ts, threadTS := stamps.Draw(t, "ts"), rapid.OneOf(rapid.Just(""), stamps).Draw(t, "thread_ts")
		key := ThreadKey("acme", channel, ts, threadTS)
		gotChannel, gotRoot, err := ParseThreadKey(key)
		if err != nil || gotChannel != channel.ID {
			t.Fatalf("%s: channel %q, error %v", key, gotChannel, err)
		}
		if again := ThreadKey("acme", channel, ts, gotRoot); again != key {
			t.Errorf("%s and its root %q give %s", key, gotRoot, again)
		}
	})
}

func TestParseThreadKeyRefuses(t *testing.T) {
	for _, key := range []event.ThreadKey{
		"", "slack:acme", "slack:acme:", "discord:acme:C1", "slack:acme:C1:now", "slack:acme:C1:", "slack:acme:C 1", "slack:acme:C1:1.2:3",
	} {
		if channel, root, err := ParseThreadKey(key); err == nil {
			t.Errorf("%q is read as channel %q, root %q", key, channel, root)
		}
	}
}
