package journal

import (
	"context"
	"errors"
	"testing"
)

// unclearEngine is a store whose first writes have no known outcome.
type unclearEngine struct {
	Engine
	unclear, writes int
}

func (e *unclearEngine) Write(context.Context, WriteOptions, func(Tx) error) error {
	if e.writes++; e.writes <= e.unclear {
		return ErrUnclear
	}
	return nil
}

// TestConfiguredOutlivesALostConnection proves that a write without a known outcome ends neither
// the daemon's start nor a reload, and that the end of ctx does.
func TestConfiguredOutlivesALostConnection(t *testing.T) {
	e := &unclearEngine{unclear: 2}
	if err := New(e, Options{}).Configured(t.Context(), []string{"acme"}); err != nil || e.writes != 3 {
		t.Errorf("%v after %d writes", err, e.writes)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := New(&unclearEngine{unclear: 2}, Options{}).Configured(ctx, nil); !errors.Is(err, ErrUnclear) {
		t.Errorf("after the end of ctx: %v", err)
	}
}
