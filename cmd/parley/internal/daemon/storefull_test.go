package daemon_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// fillDisk makes a store refuse envelopes, but not smaller rows, as PostgreSQL does on a full
// disk. The returned function ends that.
func (p *pair) fillDisk() (free func()) {
	p.t.Helper()
	db, err := pgx.Connect(p.ctx, p.store)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = db.Close(p.ctx) }) // the test drops its database
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

// TestNodeWithFullStoreIsNotReady, refuses messages, and goes on without a restart when the
// store has room again.
func TestNodeWithFullStoreIsNotReady(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	h := p.nodes[0]
	post := func(want int) {
		t.Helper()
		got := h.web(http.MethodPost, "local/messages", h.local(), `{"thread_id":"`+thread+`","client_message_id":"1","content":"hello"}`)
		if got.status != want || want != http.StatusAccepted && !strings.Contains(got.body, "the disk of the store is full") {
			t.Errorf("post: %d %s, want %d", got.status, got.body, want)
		}
	}
	ready := func(want int) {
		t.Helper()
		if got := h.get("/readyz"); got.status != want {
			t.Errorf("ready: %d %s, want %d", got.status, got.body, want)
		}
	}
	ready(http.StatusOK)
	free := p.fillDisk()
	post(http.StatusServiceUnavailable)
	ready(http.StatusServiceUnavailable)
	free()
	post(http.StatusAccepted)
	ready(http.StatusOK)
	p.answers(thread, 1)
}
