package send_test

import (
	"errors"
	"testing"

	"parley/adapters"
	"parley/adapters/discord/discordtest"
	"parley/adapters/discord/internal/testapp"
)

// TestReact: a reaction is added once, and a server's own emoji has its form.
func TestReact(t *testing.T) {
	l := testapp.Prepare(t, discordtest.Options{}, nil)
	m := l.Put(discordtest.Message{Channel: testapp.Room, Author: testapp.Mara, Content: "hello"})
	sign := adapters.Sign{To: adapters.Address{Channel: testapp.Room, Place: m.ID}, Message: m.ID}
	for _, given := range []string{":tada:", "🎉"} {
		sign.Text, _ = l.Adapter.Emoji(given)
		if err := l.Adapter.React(t.Context(), sign); err != nil {
			t.Error(err)
		}
	}
	if n := l.Reactions(testapp.Room, m.ID); n != 1 {
		t.Errorf("%d reactions", n)
	}
	for given, want := range map[string]string{"<:parrot:123456789012345678>": "parrot:123456789012345678", "parrot": "🦜", "our_parrot": "", "": "", "a b": ""} {
		if got, ok := l.Adapter.Emoji(given); got != want && ok {
			t.Errorf("%q: %q", given, got)
		}
	}
	sign.Message = "command/1"
	err := l.Adapter.React(t.Context(), sign)
	if refused, ok := errors.AsType[*adapters.SendError](err); !ok || refused.Failure != adapters.Permanent {
		t.Error(err)
	}
}
