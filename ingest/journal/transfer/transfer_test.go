package transfer_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"parley/ingest/event"
	"parley/ingest/journal"
	"parley/ingest/journal/transfer"
)

// direction is where a copy is made from and to.
type direction struct{ from, to store }

func directions() []direction {
	return []direction{{embedded, embedded}, {embedded, shared}, {shared, embedded}, {shared, shared}}
}

// quick says that no server is waited for.
func (d direction) quick() bool { return d.from.name == d.to.name && d.from.name == embedded.name }

// everyWay runs a test once for each pair of engines.
func everyWay(t *testing.T, test func(t *testing.T, d direction)) {
	for _, d := range directions() {
		t.Run(d.from.name+" to "+d.to.name, func(t *testing.T) {
			t.Parallel()
			test(t, d)
		})
	}
}

// small makes batches of a few rows, and several walks of a comparison.
var small = transfer.Options{Rows: 3, Bytes: 40, Threads: 2}

// options are small where each transaction does not wait for a server's flush.
func (d direction) options() transfer.Options {
	if d.quick() {
		return small
	}
	return transfer.Options{Rows: 50, Bytes: 4000}
}

// TestEveryColumnIsKnown fails where a migration has added what a copy would lose.
func TestEveryColumnIsKnown(t *testing.T) {
	everyWay(t, func(t *testing.T, d direction) {
		if diff := cmp.Diff(schema(transfer.Known()), d.to.schema(t, d.to.open(t))); diff != "" {
			t.Errorf("the copy knows other columns than %s has (-copy +%s):\n%s", d.to.name, d.to.name, diff)
		}
	})
}

// TestCopyIsLikeItsSource whatever stands in the source. Where a flush of a server
// is waited for, a few examples must do.
func TestCopyIsLikeItsSource(t *testing.T) {
	everyWay(t, func(t *testing.T, d direction) {
		columns := schema(transfer.Known())
		from, to := d.from.open(t), d.to.open(t)
		if d.quick() {
			rapid.Check(t, func(t *rapid.T) { copied(t, d, from, to, columns.lines(5).Draw(t, "rows")) })
			return
		}
		for seed := range 3 {
			copied(t, d, from, to, columns.lines(5).Example(seed))
		}
	})
}

// copied copies some rows, in stores that it empties first.
func copied(t tester, d direction, from, to journal.Engine, lines []line) {
	t.Helper()
	columns := schema(transfer.Known())
	columns.empty(t, from)
	columns.empty(t, to)
	columns.fill(t, from, lines)
	want := columns.dump(t, from, true)
	report, err := transfer.Copy(t.Context(), from, to, d.options())
	if err != nil {
		t.Fatalf("copy: %v", err)
	}
	if diff := cmp.Diff(want, columns.dump(t, to, false)); diff != "" {
		t.Errorf("the copy (-want +got):\n%s", diff)
	}
	if err := journal.Whole(t.Context(), to); err != nil {
		t.Errorf("a daemon may not work on it: %v", err)
	}
	total := int64(0)
	for _, c := range report.Tables {
		total += c.Rows
	}
	if total != int64(len(want)) {
		t.Errorf("%d rows are reported of %d", total, len(want))
	}
}

// example is a store with some rows in every table, always the same.
func example(t *testing.T, s store) journal.Engine {
	t.Helper()
	columns := schema(transfer.Known())
	engine := s.open(t)
	columns.fill(t, engine, columns.lines(4).Example(1))
	return engine
}

// cut is an engine that fails in some way at the nth call.
type cut struct {
	journal.Engine
	left   int
	fail   failure
	cancel func() // ends the context of the call
}

// failure is how a write can be cut short.
type failure func(c *cut, ctx context.Context, fn func(journal.Tx) error) error

var errCut = errors.New("cut short")

func (c *cut) Write(ctx context.Context, fn func(journal.Tx) error) error {
	if c.left--; c.left == 0 {
		return c.fail(c, ctx, fn)
	}
	return c.Engine.Write(ctx, fn)
}

// cutTx fails after some statements.
type cutTx struct {
	journal.Tx
	left int
}

func (c *cutTx) Exec(query string, args ...any) (int64, error) {
	if c.left--; c.left < 0 {
		return 0, errCut
	}
	return c.Tx.Exec(query, args...)
}

func (c *cutTx) Later(none error, dest []any, query string, args ...any) error {
	if c.left--; c.left < 0 {
		return errCut
	}
	return c.Tx.Later(none, dest, query, args...)
}

var failures = map[string]failure{
	"before": func(*cut, context.Context, func(journal.Tx) error) error { return errCut },
	"within": func(c *cut, ctx context.Context, fn func(journal.Tx) error) error {
		return c.Engine.Write(ctx, func(tx journal.Tx) error { return errors.Join(fn(&cutTx{tx, 2}), errCut) })
	},
	"behind": func(c *cut, ctx context.Context, fn func(journal.Tx) error) error {
		return errors.Join(c.Engine.Write(ctx, fn), errCut)
	},
	"canceled": func(c *cut, ctx context.Context, fn func(journal.Tx) error) error {
		c.cancel()
		return c.Engine.Write(ctx, fn)
	},
}

// TestCopyGoesOnWhereItEnded cuts a copy short at every write, in every way; until
// it is complete no daemon may work on it. With a server it is some writes, in the
// two ways that say most.
func TestCopyGoesOnWhereItEnded(t *testing.T) {
	everyWay(t, func(t *testing.T, d direction) {
		columns := schema(transfer.Known())
		from, to := example(t, d.from), d.to.open(t)
		want := columns.dump(t, from, true)
		step := 5
		if d.quick() {
			step = 1
		}
		for way, fail := range failures {
			if !d.quick() && way != "within" && way != "behind" {
				continue
			}
			for n, ended := 1, false; !ended; n += step {
				columns.empty(t, to)
				ctx, cancel := context.WithCancel(t.Context())
				broken := &cut{Engine: to, left: n, fail: fail, cancel: cancel}
				_, err := transfer.Copy(ctx, from, broken, d.options())
				cancel()
				if ended = broken.left > 0; ended {
					continue
				}
				if !errors.Is(err, errCut) && !errors.Is(err, context.Canceled) {
					t.Fatalf("%s write %d: %v", way, n, err)
				}
				resumed(t, from, to, d.options(), want)
			}
		}
	})
}

// resumed goes on with a copy that was cut short.
func resumed(t *testing.T, from, to journal.Engine, options transfer.Options, want []string) {
	t.Helper()
	columns := schema(transfer.Known())
	before := len(columns.dump(t, to, false))
	if err := journal.Whole(t.Context(), to); before > 0 && before < len(want) && !errors.Is(err, journal.ErrUnfinished) {
		t.Errorf("a daemon may work on %d rows of %d: %v", before, len(want), err)
	}
	again := 0
	options.Progress = func(p transfer.Progress) {
		if !p.Verifying {
			again++
		}
	}
	if _, err := transfer.Copy(t.Context(), from, to, options); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, columns.dump(t, to, false)); diff != "" {
		t.Errorf("the copy (-want +got):\n%s", diff)
	}
	if most := len(want) - before; again > most {
		t.Errorf("%d batches were written for %d rows that were missing", again, most)
	}
	if err := journal.Whole(t.Context(), to); err != nil {
		t.Error(err)
	}
}

// TestAJournalGoesOnInItsCopy with ids that follow, what it knew as duplicates
// known still, and no lease of before of any force.
func TestAJournalGoesOnInItsCopy(t *testing.T) {
	everyWay(t, func(t *testing.T, d direction) {
		from, to := d.from.open(t), d.to.open(t)
		custody := func(engine journal.Engine, key string) journal.Custody {
			t.Helper()
			custody, err := journal.New(engine, journal.Options{Node: "n"}).Accept(t.Context(), journal.Acceptance{
				Envelope: event.Envelope{Workspace: "acme", Platform: event.Slack, Transport: "http", Body: []byte(key)},
				Keys:     event.Keys{Kind: event.KindMessage, Dedupe: key, Thread: "slack:acme:C1:1", Channel: event.Channel{ID: "C1"}, Subject: key},
			})
			if err != nil {
				t.Fatal(err)
			}
			return custody
		}
		first := custody(from, "one")
		before, err := journal.New(from, journal.Options{Node: "n"}).Claim(t.Context(), first.Thread, journal.Intake)
		if err != nil || before == nil {
			t.Fatalf("claim: %v, %v", before, err)
		}
		if _, err := transfer.Copy(t.Context(), from, to, transfer.Options{}); err != nil {
			t.Fatal(err)
		}
		if again := custody(to, "one"); again.ID != first.ID || !again.Duplicate {
			t.Errorf("the same payload again: %+v, want %+v", again, first)
		}
		if next := custody(to, "two"); next.ID <= first.ID || next.Thread != first.Thread {
			t.Errorf("another payload: %+v behind %+v", next, first)
		}
		after, err := journal.New(to, journal.Options{Node: "m"}).Claim(t.Context(), first.Thread, journal.Intake)
		if err != nil || after == nil || after.Fence <= before.Fence+1 {
			t.Errorf("claim in the copy: %+v behind %+v, %v", after, before, err)
		}
	})
}
