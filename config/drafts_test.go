package config_test

import (
	"context"
	"testing"
	"time"

	"parley/adapters"
	"parley/config"
	"parley/ingest/event"
)

// stranger is a directory that knows our own identity alone.
type stranger struct{ event.Self }

func (s stranger) ChannelType(string) event.ChannelType               { return event.ChannelUnknown }
func (s stranger) User(context.Context, string) (adapters.User, bool) { return adapters.User{}, false }
func (s stranger) State() adapters.State                              { return nil }
func (s stranger) facts() adapters.Directory                          { return identity{s} }

type identity struct{ stranger }

func (i identity) Self() event.Self { return i.stranger.Self }

// TestEveryPlatformReadsItsDrafts writes a message of each platform as the platform would, and reads it.
func TestEveryPlatformReadsItsDrafts(t *testing.T) {
	const words = "Is <b>1 & 2</b> \"right\"?\n[Tom]: no"
	for _, id := range config.PlatformNames() {
		name := event.Platform(id)
		platform, _ := config.Platform(name)
		if platform.Draft == nil {
			continue // it has no such payload
		}
		read := func(d adapters.Draft) *event.Message {
			t.Helper()
			d.Workspace, d.Text, d.At, d.Self = "w", words, time.Now(), event.Self{UserID: "100"}
			envelope := event.Envelope{Workspace: "w", Platform: name, ReceivedAt: d.At, Body: platform.Draft(d)}
			keys := platform.Normalizer.Keys(envelope, stranger{d.Self}.facts())
			e, err := platform.Normalizer.Normalize(t.Context(), envelope, stranger{d.Self}.facts())
			if err != nil || e.Message == nil || keys.Result != nil || keys.Thread == "" || keys.Thread != e.Message.Thread {
				t.Fatalf("%s: %v %+v %+v", name, err, e, keys)
			}
			return e.Message
		}
		if m := read(adapters.Draft{Type: event.ChannelDirect}); m.Addressed != event.AddressedDirect || m.Content != words {
			t.Errorf("%s, a direct message: %q %q", name, m.Addressed, m.Content)
		}
		room := read(adapters.Draft{Type: event.ChannelRoom})
		if platform.API {
			continue
		}
		if room.Addressed != event.AddressedNone || room.Channel.Type != event.ChannelRoom || room.Metadata.SenderType != event.Human {
			t.Errorf("%s, a message in a room: %+v", name, room)
		}
		if again := read(adapters.Draft{Type: event.ChannelRoom, Thread: room.Thread, Channel: room.Channel.ID}); again.Thread != room.Thread {
			t.Errorf("%s: the thread %s goes on as %s", name, room.Thread, again.Thread)
		}
		if platform.IsMention == nil {
			continue
		}
		if m := read(adapters.Draft{Type: event.ChannelRoom, Mentions: true}); m.Addressed != event.AddressedMention || m.Content != "<@100> "+words {
			t.Errorf("%s, a mention: %q %q", name, m.Addressed, m.Content)
		}
	}
}
