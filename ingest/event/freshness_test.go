package event_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/ingest/event"
)

func TestStaleness(t *testing.T) {
	yes, no := new(true), new(false)
	for _, c := range []struct {
		base    *int64
		current int64
		stale   *bool
		lag     *int64
	}{
		{new(int64(10)), 10, no, new(int64(0))},
		{new(int64(10)), 12, yes, new(int64(2))},
		{new(int64(12)), 10, no, new(int64(0))},
		{new(int64(0)), 0, no, new(int64(0))},
		{new(int64(0)), 5, yes, new(int64(5))},
		{nil, 5, nil, nil},
		{nil, 0, nil, nil},
	} {
		if diff := cmp.Diff(c.stale, event.IsStale(c.base, c.current)); diff != "" {
			t.Errorf("stale (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(c.lag, event.ComputeStaleLag(c.base, c.current)); diff != "" {
			t.Errorf("lag (-want +got):\n%s", diff)
		}
	}
}
