package send_test

import (
	"testing"
	"time"

	"parley/adapters"
	"parley/adapters/discord/discordtest"
	"parley/adapters/discord/internal/testapp"
)

func TestTypingIsKeptAlive(t *testing.T) {
	l := testapp.Prepare(t, discordtest.Options{}, nil)
	if every := l.Adapter.Limits().SignEvery; every <= 0 || every >= 10*time.Second {
		t.Errorf("the sign is shown every %v; Discord shows it for 10 s", every)
	}
	sign := adapters.Sign{To: adapters.Address{Channel: testapp.Room}, Message: "1"}
	for range 2 {
		if err := l.Adapter.ShowWorking(t.Context(), sign); err != nil {
			t.Error(err)
		}
	}
	if n := l.TypingCalls(testapp.Room); n != 2 {
		t.Errorf("%d calls", n)
	}
	if err := l.Adapter.ClearWorking(t.Context(), sign); err != nil {
		t.Error(err)
	}
}
