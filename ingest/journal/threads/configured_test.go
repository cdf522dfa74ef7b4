package threads

import (
	"context"
	"errors"
	"testing"
	"time"

	"parley/ingest/journal/storage"
)

// unclearEngine is a store whose first writes have no known outcome.
type unclearEngine struct {
	storage.Engine
	unclear, writes int
}

func (e *unclearEngine) Write(context.Context, storage.WriteOptions, func(storage.Tx) error) error {
	if e.writes++; e.writes <= e.unclear {
		return storage.ErrUnclear
	}
	return nil
}

func newThreads(e storage.Engine) *Threads {
	return New(&storage.DB{Engine: e, Now: time.Now}, nil)
}

// TestConfiguredOutlivesALostConnection proves that a write without a known outcome ends neither
// the daemon's start nor a reload, and that the end of ctx does.
func TestConfiguredOutlivesALostConnection(t *testing.T) {
	e := &unclearEngine{unclear: 2}
	if err := newThreads(e).Configured(t.Context(), []string{"acme"}); err != nil || e.writes != 3 {
		t.Errorf("%v after %d writes", err, e.writes)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := newThreads(&unclearEngine{unclear: 2}).Configured(ctx, nil); !errors.Is(err, storage.ErrUnclear) {
		t.Errorf("after the end of ctx: %v", err)
	}
}
