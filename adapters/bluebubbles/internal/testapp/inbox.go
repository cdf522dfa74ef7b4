package testapp

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"parley/adapters"
	"parley/adapters/bluebubbles/payload"
	"parley/ingest/event"
)

// Inbox is an adapters.Inbox that accepts each dedupe key once.
type Inbox struct {
	Commit func()           // waits for the commit; nil for no wait
	Taken  []event.Envelope // in the order of acceptance

	mu      sync.Mutex
	seen    map[string]bool
	texts   []string        // "text by transport", in the order of acceptance
	busy    int             // the next envelopes that are refused
	known   map[string]bool // the messages' guids
	changed *sync.Cond
}

func newInbox() *Inbox {
	d := &Inbox{seen: map[string]bool{}, known: map[string]bool{}}
	d.changed = sync.NewCond(&d.mu)
	return d
}

// Refuse makes the inbox refuse the next envelope, as if the store were busy.
func (d *Inbox) Refuse() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.busy++
}

// Accept implements adapters.Inbox.
func (d *Inbox) Accept(_ context.Context, e event.Envelope) (adapters.Receipt, error) {
	receipt, err := d.take(e)
	if d.Commit != nil {
		d.Commit()
	}
	return receipt, err
}

func (d *Inbox) take(e event.Envelope) (adapters.Receipt, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.busy > 0 {
		d.busy--
		return adapters.Receipt{}, adapters.ErrBusy
	}
	if e.Queued != nil {
		e.Queued()
	}
	keys := payload.Normalizer{}.Keys(e, Directory{})
	if d.seen[keys.Dedupe] {
		return adapters.Receipt{Duplicate: true}, nil
	}
	d.seen[keys.Dedupe] = true
	d.Taken = append(d.Taken, e)
	text := string(keys.Kind)
	if n, err := (payload.Normalizer{}).Normalize(context.Background(), e, Directory{}); err == nil && n.Message != nil {
		text = n.Message.Content
	}
	d.texts = append(d.texts, text+" by "+e.Transport)
	waits := keys.Result == nil && keys.Thread == "" && !d.known[keys.MessageID]
	d.known[keys.MessageID] = d.known[keys.MessageID] || keys.Thread != ""
	d.changed.Broadcast()
	return adapters.Receipt{ID: int64(len(d.Taken)), Waits: waits}, nil
}

// Await waits until n envelopes are accepted, and returns "text by transport" of each.
func (d *Inbox) Await(t *testing.T, n int) []string {
	t.Helper()
	stop := context.AfterFunc(t.Context(), d.changed.Broadcast)
	defer stop()
	timer := time.AfterFunc(2*time.Minute, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		n = 0
		d.changed.Broadcast()
	})
	defer timer.Stop()
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.texts) < n {
		d.changed.Wait()
	}
	if n == 0 {
		t.Fatalf("only these arrived: %q", d.texts)
	}
	return slices.Clone(d.texts)
}
