package daemon_test

import (
	"net/http"
	"testing"

	"github.com/jackc/pgx/v5"
)

// full makes a store refuse envelopes as PostgreSQL does on a full disk, and all
// that is smaller not, until the returned function is called.
func (p *pair) full() (free func()) {
	p.t.Helper()
	db, err := pgx.Connect(p.ctx, p.store)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = db.Close(p.ctx) }) // the store goes with the test
	do := func(statements string) {
		p.t.Helper()
		if _, err := db.Exec(p.ctx, statements); err != nil {
			p.t.Fatal(err)
		}
	}
	do(`CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS
			'BEGIN RAISE EXCEPTION ''No space left on device'' USING ERRCODE = ''disk_full''; END';
		CREATE TRIGGER full_disk BEFORE INSERT ON envelopes FOR EACH ROW EXECUTE FUNCTION full_disk()`)
	return func() {
		p.t.Helper()
		do(`DROP TRIGGER full_disk ON envelopes`)
	}
}

// TestANodeWhoseStoreIsFullIsNotReady, refuses custody, and goes on by itself when
// there is room again.
func TestANodeWhoseStoreIsFullIsNotReady(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	h := p.nodes[0]
	tell := func(want int) {
		t.Helper()
		got := h.web(http.MethodPost, "local/messages", "", `{"thread_id":"`+thread+`","client_message_id":"1","content":"hello"}`)
		if got.status != want {
			t.Errorf("the store is asked: %d %s, want %d", got.status, got.body, want)
		}
	}
	ready := func(want int) {
		t.Helper()
		if got := h.get("/readyz"); got.status != want {
			t.Errorf("ready: %d %s, want %d", got.status, got.body, want)
		}
	}
	ready(http.StatusOK)
	free := p.full()
	tell(http.StatusServiceUnavailable)
	ready(http.StatusServiceUnavailable)
	free()
	tell(http.StatusAccepted)
	ready(http.StatusOK)
	p.answers(thread, 1)
}
