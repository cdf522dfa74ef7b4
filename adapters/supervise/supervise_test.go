package supervise_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/adapters"
	"parley/adapters/supervise"
	"parley/ingest/event"
)

// runner calls one function of the test for each run.
type runner struct {
	does   []func(ctx context.Context, link adapters.Link) error // after these, it runs until ctx ends
	begun  []time.Duration
	start  time.Time
	missed []string // the reports of missed messages
}

func (r *runner) Run(ctx context.Context, _ adapters.Inbox, link adapters.Link) error {
	r.begun = append(r.begun, time.Since(r.start))
	if len(r.does) == 0 {
		link.Up(event.Self{UserID: "UBOT"})
		<-ctx.Done()
		return nil
	}
	do := r.does[0]
	r.does = r.does[1:]
	return do(ctx, link)
}

func fails(context.Context, adapters.Link) error { return errors.New("connection reset") }

func upThenFails(_ context.Context, link adapters.Link) error {
	link.Up(event.Self{})
	return errors.New("connection reset")
}

// supervised runs r for a while, and returns the reports.
func supervised(r *runner, d time.Duration) (states []adapters.ConnectionState, last adapters.Status, selves []string) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	r.start = time.Now()
	supervise.Run(ctx, supervise.Connection{
		Connection: adapters.Connection{Run: r.Run},
		Link: adapters.Link{
			Up: func(self event.Self) { selves = append(selves, self.UserID) },
			Missed: func(channel string, since time.Time) {
				r.missed = append(r.missed, fmt.Sprint(channel, " ", since.Sub(r.start)))
			},
			Log: slog.New(slog.DiscardHandler),
		},
		Report: func(s adapters.Status) { states, last = append(states, s.State), s },
	})
	return states, last, selves
}

// TestAFailedAdapterRunsAgain proves that the waits double, up to a minute.
func TestAFailedAdapterRunsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &runner{}
		for range 9 {
			r.does = append(r.does, fails)
		}
		states, last, selves := supervised(r, time.Hour)
		seconds := []time.Duration{0, 1, 3, 7, 15, 31, 63, 123, 183, 243}
		for i, begun := range r.begun {
			if begun != seconds[i]*time.Second {
				t.Errorf("run %d began after %v, want %d s", i+1, begun, seconds[i])
			}
		}
		if len(r.begun) != 10 || states[0] != adapters.Starting || states[1] != adapters.Down || last.State != adapters.Up || len(selves) != 1 || selves[0] != "UBOT" {
			t.Errorf("%d runs, states %v, identities %q", len(r.begun), states, selves)
		}
	})
}

func TestUpResetsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &runner{does: []func(context.Context, adapters.Link) error{fails, fails, fails, upThenFails, fails}}
		supervised(r, time.Hour)
		want := []time.Duration{0, time.Second, 3 * time.Second, 7 * time.Second, 8 * time.Second, 10 * time.Second}
		if diff := cmp.Diff(want, r.begun); diff != "" {
			t.Error(diff)
		}
	})
}

// TestEndsOfARun proves which ends of a run end the adapter, and which states are
// reported.
func TestEndsOfARun(t *testing.T) {
	refused := &adapters.RefusedError{Err: errors.New("invalid_auth"), Hint: "check bot_token"}
	for name, c := range map[string]struct {
		does   func(context.Context, adapters.Link) error
		states []adapters.ConnectionState
		words  string
	}{
		"refused":   {func(context.Context, adapters.Link) error { return refused }, []adapters.ConnectionState{adapters.Starting, adapters.Refused}, "invalid_auth (check bot_token)"},
		"a failure": {fails, []adapters.ConnectionState{adapters.Starting, adapters.Down}, "connection reset"},
		"a panic":   {func(context.Context, adapters.Link) error { panic("a bug") }, []adapters.ConnectionState{adapters.Starting, adapters.Down}, "panic: a bug"},
		"no reason": {func(context.Context, adapters.Link) error { return nil }, []adapters.ConnectionState{adapters.Starting, adapters.Down}, "the connection ended"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &runner{does: []func(context.Context, adapters.Link) error{c.does}}
				states, last, _ := supervised(r, 500*time.Millisecond)
				if diff := cmp.Diff(c.states, states); diff != "" || last.Error != c.words || !last.Since.Equal(r.start) {
					t.Errorf("%+v\n%s", last, diff)
				}
			})
		})
	}
}

// TestARunReportsMissedMessages proves that a connection reports them while it is up, and
// that its state does not change.
func TestARunReportsMissedMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &runner{does: []func(context.Context, adapters.Link) error{func(ctx context.Context, link adapters.Link) error {
			link.Up(event.Self{UserID: "UBOT"})
			link.Missed("C1", time.Now().Add(-time.Minute))
			link.Missed("", time.Now())
			<-ctx.Done()
			return nil
		}}}
		states, _, _ := supervised(r, time.Hour)
		if diff := cmp.Diff([]adapters.ConnectionState{adapters.Starting, adapters.Up}, states); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"C1 -1m0s", " 0s"}, r.missed); diff != "" {
			t.Error(diff)
		}
	})
}

// TestARunMayRepairItsConnection proves that the adapter is down meanwhile, and that the
// supervisor does not run it again.
func TestARunMayRepairItsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &runner{does: []func(context.Context, adapters.Link) error{func(ctx context.Context, link adapters.Link) error {
			link.Up(event.Self{UserID: "UBOT"})
			link.Down(errors.New("no socket"))
			link.Up(event.Self{UserID: "UBOT"})
			link.Down(errors.New("no socket again"))
			<-ctx.Done()
			return nil
		}}}
		states, last, selves := supervised(r, time.Hour)
		want := []adapters.ConnectionState{adapters.Starting, adapters.Up, adapters.Down, adapters.Up, adapters.Down}
		if diff := cmp.Diff(want, states); diff != "" || len(r.begun) != 1 || len(selves) != 2 || last.Error != "no socket again" {
			t.Errorf("%d runs, up %d times, last status %+v\n%s", len(r.begun), len(selves), last, diff)
		}
	})
}

// TestASplitConnection checks that each part runs on its own, that the whole asks again after a
// failure, and that only the parts' states count then.
func TestASplitConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		asked := 0
		var states []adapters.ConnectionState
		parts := make(chan string, 10)
		supervise.Run(ctx, supervise.Connection{
			Connection: adapters.Connection{Name: "shards", Split: func(context.Context) ([]adapters.Connection, error) {
				if asked++; asked == 1 {
					return nil, errors.New("no route")
				}
				return []adapters.Connection{{Name: "a"}, {Name: "b"}}, nil
			}},
			Each:   func(_ context.Context, c adapters.Connection) { parts <- c.Name }, // a refused connection ends at once
			Report: func(s adapters.Status) { states = append(states, s.State) },
			Link:   adapters.Link{Log: slog.New(slog.DiscardHandler)},
		})
		close(parts)
		seen := map[string]int{}
		for name := range parts {
			seen[name]++
		}
		if diff := cmp.Diff(map[string]int{"a": 1, "b": 1}, seen); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]adapters.ConnectionState{adapters.Starting, adapters.Down, adapters.Divided}, states); diff != "" {
			t.Error(diff)
		}
	})
}
