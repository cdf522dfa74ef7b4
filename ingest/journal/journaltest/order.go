package journaltest

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
)

func orderPromises() []promise {
	return []promise{
		{"the ids of a thread's rows follow the order of their writes, with several nodes", idsInOrder},
		{"a batch of envelopes ends after 1 MiB of bodies, and has at least one envelope", batchBounded},
		{"a thread's wrong count of pending envelopes is corrected, and a right one is not written", countCorrected},
	}
}

func idsInOrder(f *fixture) {
	const writers, each = 4, 5
	f.message(threadKey(1), said("C1/0", "hi"), passive)
	w := watch{fixture: f, thread: f.thread(threadKey(1))}
	lease := f.claim(w.thread)
	var nodes []*fixture
	for i := range writers {
		nodes = append(nodes, f.node(fmt.Sprint("node", i)))
	}
	name := func(n, i int) string { return fmt.Sprintf("C1/%d.%d", n, i) }
	var envelopes [writers][each]int64
	w.atOnce(nodes, func(n int) error {
		for i := range each {
			accepted, err := nodes[n].Envelopes.Accept(f.ctx, nodes[n].envelope(event.KindMessage, threadKey(1), name(n, i)))
			if err != nil {
				return err
			}
			envelopes[n][i] = accepted.ID
		}
		return nil
	})
	w.atOnce(nodes, func(n int) error {
		for i, id := range envelopes[n] {
			e := entry(id, event.Event{Kind: event.KindMessage, Message: said(name(n, i), "hi")}, triggers)
			if _, err := nodes[n].Recorder.Record(f.ctx, lease, e); err != nil {
				return err
			}
		}
		return nil
	})
	w.atOnce(nodes, func(n int) error { return nodes[n].answerAll(lease) })
	same(f, "stored", []int{len(w.seen[0]), len(w.seen[1]), len(w.seen[2]), len(w.seen[3])},
		[]int{1 + writers*each, 1 + 2*writers*each, writers * each, 2 * writers * each})
}

func batchBounded(f *fixture) {
	var thread int64
	var batches [][]int64
	for _, sizes := range [][]int{{3 << 20}, {600 << 10, 600 << 10}, {1 << 20}, {1, 1, 1}} {
		var batch []int64
		for _, size := range sizes {
			a := f.envelope(event.KindMessage, threadKey(1), "C1/1")
			a.Envelope.Body = make([]byte, size)
			accepted := f.accept(a)
			thread, batch = accepted.Thread, append(batch, accepted.ID)
		}
		batches = append(batches, batch)
	}
	for _, want := range batches {
		batch := f.next(thread)
		same(f, "batch", each(batch, func(p envelopes.Pending) int64 { return p.ID }), want)
		for _, p := range batch {
			f.must(f.Envelopes.Bury(f.ctx, f.claim(thread), p.ID, errors.New("done")))
		}
	}
	same(f, "envelopes left", len(f.next(thread)), 0)
}

func countCorrected(f *fixture) {
	f.message(threadKey(1), said("C1/1", "settled"), passive)
	f.message(threadKey(2), said("C1/2", "settled"), passive)
	first := f.accept(f.envelope(event.KindMessage, threadKey(1), "C1/3"))
	f.accept(f.envelope(event.KindMessage, threadKey(1), "C1/4"))
	busy, idle := f.claim(first.Thread), f.claim(f.thread(threadKey(2)))
	f.must(f.Envelopes.Postpone(f.ctx, busy, first.ID, f.clock.Now().Add(time.Minute), nil))
	right := f.dump()
	const tooMany, dueTooEarly = `UPDATE threads SET pending = pending + 1, intake_at = NULL`, `UPDATE threads SET intake_at = 1`
	for _, wrong := range []string{tooMany, dueTooEarly} {
		f.exec(wrong)
		f.must(errors.Join(f.Envelopes.CorrectPending(f.ctx, busy), f.Envelopes.CorrectPending(f.ctx, idle)))
		same(f, "rows after "+wrong, f.dump(), right)
	}
	next := f.successor("second")
	next.claim(busy.Thread)
	next.claim(idle.Thread)
	f.must(errors.Join(f.Envelopes.CorrectPending(f.ctx, busy), f.Envelopes.CorrectPending(f.ctx, idle))) // a write would be fenced off
	f.exec(tooMany)
	f.fails("correct under an old claim", f.Envelopes.CorrectPending(f.ctx, idle), storage.ErrFenced)
}

// answerAll answers the thread's turns, each message by itself, concurrently with other
// nodes.
func (f *fixture) answerAll(lease *threads.Claim) error {
	for {
		run, err := f.Runs.BeginRun(f.ctx, lease, agent, false, func(*runs.Run) bool { return true }, math.MaxInt64)
		if err != nil || run == nil {
			return err
		}
		if _, err = f.Runs.CommitReply(f.ctx, lease, run, answer("Hello.", "Hel", "lo.")); err != nil && !errors.Is(err, storage.ErrFenced) {
			return err
		}
	}
}

// watch reads the rows of a thread while nodes write them.
type watch struct {
	*fixture
	thread int64
	seen   [4][]int64 // as the last look returned them
}

// atOnce lets nodes write concurrently, and looks until they have ended.
func (w *watch) atOnce(nodes []*fixture, write func(n int) error) {
	w.Helper()
	errs := make([]error, len(nodes))
	var writing sync.WaitGroup
	for n := range nodes {
		writing.Go(func() { errs[n] = write(n) })
	}
	ended := make(chan struct{})
	go func() {
		writing.Wait()
		close(ended)
	}()
	for last := false; !last; {
		select {
		case <-ended:
			last = true
		default:
		}
		w.look()
	}
	w.must(errors.Join(errs...))
}

// look fails the test if a new row precedes an older one.
func (w *watch) look() {
	w.Helper()
	for i, query := range []string{
		`SELECT id FROM envelopes WHERE thread = $1 ORDER BY id`,
		`SELECT row FROM messages WHERE thread = $1 ORDER BY seq`,
		`SELECT row FROM messages WHERE thread = $1 AND author = 'agent' ORDER BY seq`,
		`SELECT id FROM deliveries WHERE thread = $1 ORDER BY id`,
	} {
		ids := w.ids(query)
		if before := w.seen[i]; len(ids) < len(before) || !slices.Equal(before, ids[:len(before)]) || !slices.IsSorted(ids) {
			w.Fatalf("%s: %v, and before %v", query, ids, before)
		}
		w.seen[i] = ids
	}
}

func (w *watch) ids(query string) (ids []int64) {
	w.Helper()
	w.must(w.engine.Read(w.ctx, func(tx storage.Tx) error {
		ids = nil
		return tx.Rows(func(scan func(...any) error) error {
			var id int64
			err := scan(&id)
			ids = append(ids, id)
			return err
		}, query, w.thread)
	}))
	return ids
}
