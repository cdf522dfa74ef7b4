package record

import (
	"context"
	"errors"
	"testing"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
)

// broken is an engine whose transactions fail with their first query.
type broken struct {
	storage.Engine
	storage.Tx
	cause error
	ran   int
}

func (s *broken) Write(_ context.Context, _ storage.WriteOptions, fn func(storage.Tx) error) error {
	return fn(s)
}

func (s *broken) Row([]any, string, ...any) (bool, error) {
	s.ran++
	return false, s.cause
}

// TestAFailedLookupFailsTheRecord proves that a decision has no effect after a lookup of the
// policy has failed.
func TestAFailedLookupFailsTheRecord(t *testing.T) {
	cause := errors.New("the disk is gone")
	s := &broken{cause: cause}
	entry := Entry{Event: event.Event{Kind: event.KindMessage, Message: &event.Message{ExternalID: "C1/1"}}}
	entry.Decide = func(_ *event.Message, look Look) Decision {
		if look.Ours("C1/0") {
			t.Error("a failed lookup found a post")
		}
		return Decision{Trigger: messages.TriggerRun}
	}
	if _, err := New(&storage.DB{Engine: s, Now: time.Now}, nil, nil).Record(t.Context(), &threads.Claim{}, entry); err != cause || s.ran != 1 {
		t.Errorf("error %v after %d statements", err, s.ran)
	}
}
