package payload_test

import (
	"strings"
	"testing"

	"parley/adapters/bluebubbles/payload"
	"parley/ingest/event"

	"pgregory.net/rapid"
)

// TestOneChatOneThread checks that a chat is one conversation on every service, and in any
// spelling of an e-mail address.
func TestOneChatOneThread(t *testing.T) {
	for _, test := range []struct{ chat, want string }{
		{"iMessage;-;+15555550142", "bluebubbles:home:+15555550142"},
		{"any;-;+15555550142", "bluebubbles:home:+15555550142"},
		{"SMS;-;+15555550142", "bluebubbles:home:+15555550142"},
		{"+15555550142", "bluebubbles:home:+15555550142"},
		{"iMessage;-;Tomas@Example.org", "bluebubbles:home:tomas@example.org"},
		{"iMessage;+;chat640021977", "bluebubbles:home:chat640021977"},
		{"iMessage;+;chatAB", "bluebubbles:home:chatAB"},
	} {
		if got := payload.ThreadKey("home", test.chat); string(got) != test.want {
			t.Errorf("ThreadKey(%q) = %q, want %q", test.chat, got, test.want)
		}
	}
}

func TestThreadKeyIsCanonical(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(
			rapid.StringMatching(`\+[1-9][0-9]{6,14}`),
			rapid.StringMatching(`[A-Za-z0-9._]{1,12}@[A-Za-z0-9]{1,8}\.[a-z]{2,3}`),
			rapid.StringMatching(`chat[0-9a-zA-Z]{1,20}`),
		).Draw(t, "name")
		service := rapid.SampledFrom([]string{"", "iMessage;-;", "any;-;", "SMS;-;", "iMessage;+;", "RCS;-;"})
		workspace := rapid.StringMatching(`[a-z0-9][a-z0-9-]{0,31}`).Draw(t, "workspace")

		one := payload.ThreadKey(workspace, service.Draw(t, "one")+name)
		two := payload.ThreadKey(workspace, service.Draw(t, "two")+name)
		if one != two {
			t.Fatalf("the same chat has the threads %q and %q", one, two)
		}
		chat, ok := strings.CutPrefix(string(one), "bluebubbles:"+workspace+":")
		if !ok || !strings.EqualFold(chat, name) {
			t.Fatalf("thread %q does not consist of workspace and chat", one)
		}
		if again := payload.ThreadKey(workspace, chat); again != one {
			t.Fatalf("the key of the chat in the key is %q, want %q", again, one)
		}
		if strings.Contains(name, "@") && payload.ThreadKey(workspace, strings.ToUpper(name)) != one {
			t.Fatal("an e-mail address in capitals has another thread")
		}
		other := payload.ThreadKey(workspace, name+"0")
		if other == one {
			t.Fatalf("two chats have the same thread %q", one)
		}
	})
}

// TestChannelType checks that the style decides the type, or the guid if there is no style.
func TestChannelType(t *testing.T) {
	for _, test := range []struct {
		chat  string
		style int
		want  event.ChannelType
	}{
		{direct, 45, event.ChannelDirect},
		{direct, 0, event.ChannelDirect},
		{nora, 0, event.ChannelDirect},
		{group, 43, event.ChannelRoom},
		{group, 0, event.ChannelRoom},
		{"chat640021977", 43, event.ChannelRoom},
		{"any;+;" + nora, 45, event.ChannelDirect},
	} {
		data := hello().in(test.chat, test.style)
		want := event.Channel{ID: test.chat[strings.LastIndexByte(test.chat, ';')+1:], Type: test.want}
		if got := keys(t, "new-message", data).Channel; got != want {
			t.Errorf("style %d: Keys returns %v, want %v", test.style, got, want)
		}
		if got := message(t, "new-message", data, contacts{}).Channel; got != want {
			t.Errorf("style %d: the message has %v, want %v", test.style, got, want)
		}
	}
}

// TestConfiguredIDs checks that an id from a configuration is the one that events have.
func TestConfiguredIDs(t *testing.T) {
	for written, want := range map[string]string{
		"+1 (555) 555-0142": nora, "+1.555.555.0142": nora, direct: nora, "Nora@Example.org": "nora@example.org", "22395": "22395",
		group: "chat640021977", "b-2 c": "b-2 c", "urn:biz:1-2": "urn:biz:1-2",
	} {
		if got := payload.ConfiguredID(written); got != want {
			t.Errorf("%q is %q, want %q", written, got, want)
		}
	}
}
