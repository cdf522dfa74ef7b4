package live

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"parley/adapters"
	"parley/adapters/adaptertest"
	"parley/adapters/bluebubbles/call"
	"parley/ingest/event"
)

// pile is an inbox that counts the envelopes.
type pile struct{ n int }

func (p *pile) Accept(_ context.Context, e event.Envelope) (adapters.Receipt, error) {
	p.n++
	return adapters.Receipt{}, nil
}

// TestEachUnreadableRowIsHandedOver checks rows whose numbers cannot be read: intake reports every
// one of them, and the rows beside them.
func TestEachUnreadableRowIsHandedOver(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"status":200,"data":[{"originalROWID":"x","guid":"a"},{"originalROWID":"x","guid":"b"},{"originalROWID":7,"guid":"c"},{"originalROWID":7,"guid":"c"}]}`)
	}))
	defer server.Close()
	rc := New(call.New("home", call.Options{URL: server.URL, Timeout: time.Minute}), Settings{})
	rc.UseState(adaptertest.NewState())
	var inbox pile
	if err := rc.readNew(t.Context(), &inbox, new(cursor)); err != nil || inbox.n != 3 {
		t.Errorf("%d rows were handed over, want 3: %v", inbox.n, err)
	}
}
