package journaltest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal"
)

func markPromises() []promise {
	return []promise{
		{"a mark moves on and never back", markMovesOn},
		{"a gap is there with the mark, is widened and shrinks until it is gone", gapShrinks},
		{"what a gap was widened by is not shrunk away", gapWidened},
		{"gaps are widened and shrunk side by side", gapsSideBySide},
		{"the threads of a workspace in which something was answered come first, the latest before the others", recentThreads},
		{"what is put aside is durable, once, and in no thread", keptAside},
		{"what is in custody is not put aside", asideKnown},
	}
}

func moment(micro int64) time.Time {
	return time.UnixMicro(1_700_000_000_000_000 + micro).UTC()
}

func markMovesOn(f *fixture) {
	mark, err := f.Mark(f.ctx, workspace)
	f.must(err)
	same(f, "at first", mark, time.Time{})
	f.must(f.SetMark(f.ctx, workspace, moment(1), nil))
	f.must(f.SetMark(f.ctx, "other", moment(9), nil))
	f.must(f.SetMark(f.ctx, workspace, moment(3), nil))
	f.must(f.SetMark(f.ctx, workspace, moment(2), nil))
	mark, err = f.Mark(f.ctx, workspace)
	f.must(err)
	same(f, "the mark", mark, moment(3))
}

func (f *fixture) gaps() []event.Gap {
	f.Helper()
	gaps, err := f.Gaps(f.ctx, workspace)
	f.must(err)
	return gaps
}

func gapShrinks(f *fixture) {
	same(f, "at first", f.gaps(), nil)
	f.must(f.SetMark(f.ctx, workspace, moment(10), []event.Gap{{Place: "C2", From: moment(2), Until: moment(10)}, {Place: "C1", From: moment(1), Until: moment(10)}}))
	f.must(f.SetMark(f.ctx, "other", moment(10), []event.Gap{{Place: "C1", From: moment(0), Until: moment(10)}}))
	f.must(f.Shrink(f.ctx, workspace, "C1", moment(5)))
	f.must(f.Shrink(f.ctx, workspace, "C1", moment(4)))
	same(f, "the rest", f.gaps(), []event.Gap{{Place: "C2", From: moment(2), Until: moment(10)}, {Place: "C1", From: moment(5), Until: moment(10)}})
	f.must(f.Shrink(f.ctx, workspace, "C1", moment(10)))
	f.must(f.Shrink(f.ctx, workspace, "C3", moment(10)))
	same(f, "what is left", f.gaps(), []event.Gap{{Place: "C2", From: moment(2), Until: moment(10)}})
}

func gapWidened(f *fixture) {
	gap := event.Gap{Place: "C1", From: moment(1), Until: moment(10)}
	f.must(f.SetMark(f.ctx, workspace, moment(10), []event.Gap{gap}))
	f.must(f.SetMark(f.ctx, workspace, moment(20), []event.Gap{{Place: "C1", From: moment(10), Until: moment(20)}}))
	same(f, "the gap", f.gaps(), []event.Gap{{Place: "C1", From: moment(1), Until: moment(20)}})
	f.must(f.Shrink(f.ctx, workspace, "C1", gap.Until)) // who has read what it was before
	same(f, "what is left", f.gaps(), []event.Gap{{Place: "C1", From: moment(10), Until: moment(20)}})
}

func gapsSideBySide(f *fixture) {
	var going sync.WaitGroup
	errs := make([]error, 16)
	for i := range int64(8) {
		going.Go(func() {
			gap := event.Gap{Place: "C1", From: moment(10 - i), Until: moment(20 + i)}
			errs[2*i] = f.SetMark(f.ctx, workspace, moment(i), []event.Gap{gap})
		})
		going.Go(func() { errs[2*i+1] = f.Shrink(f.ctx, workspace, "C1", moment(i)) })
	}
	going.Wait()
	f.must(errors.Join(errs...))
	same(f, "the gap's end", f.gaps()[0].Until, moment(27))
}

func recentThreads(f *fixture) {
	f.message(threadKey(1), said("C1/1", "first"), passive)
	f.clock.advance(time.Hour)
	f.message(threadKey(2), said("C1/2", "second"), passive)
	f.message(threadKey(3), said("C1/3", "third"), passive)
	f.message(threadKey(2), said("C1/4", "again"), passive)
	f.message(threadKey(4), said("C1/5", "unanswered"), passive)
	recent := func(since time.Duration, limit int) []event.ThreadKey {
		threads, err := f.RecentThreads(f.ctx, workspace, f.clock.Now().Add(-since), limit)
		f.must(err)
		return threads
	}
	same(f, "of the last hours", recent(2*time.Hour, 10), []event.ThreadKey{threadKey(2), threadKey(4), threadKey(3), threadKey(1)})
	same(f, "of the last minute", recent(time.Minute, 10), []event.ThreadKey{threadKey(2), threadKey(4), threadKey(3)})
	same(f, "the latest that was answered", recent(2*time.Hour, 1), []event.ThreadKey{threadKey(2)})
	none, err := f.RecentThreads(f.ctx, "other", time.Time{}, 10)
	f.must(err)
	same(f, "of another workspace", none, nil)
}

func (f *fixture) putAside(a journal.Acceptance) journal.Custody {
	f.Helper()
	custody, err := f.PutAside(f.ctx, a)
	f.must(err)
	return custody
}

func keptAside(f *fixture) {
	var all []journal.Acceptance
	for i := range 3 {
		a := f.envelope(event.KindMessage, threadKey(1), fmt.Sprint("C1/", i))
		a.Envelope.Body = []byte{0, byte(i), 255}
		all = append(all, a)
		same(f, "the first time", f.putAside(a), journal.Custody{})
		same(f, "again", f.putAside(a).Duplicate, true)
	}
	elsewhere := f.envelope(event.KindMessage, threadKey(2), "C2/1")
	elsewhere.Keys.Channel.ID = "C2"
	elsewhere.Envelope.ReceivedAt = elsewhere.Envelope.ReceivedAt.Add(time.Minute)
	f.putAside(elsewhere)
	same(f, "threads with intake", f.due(journal.Intake), nil)

	channels, err := f.AsideChannels(f.ctx, workspace, time.Time{})
	f.must(err)
	same(f, "channels", channels, []string{"C1", "C2"})
	came := elsewhere.Envelope.ReceivedAt
	before := func(t time.Time) []string {
		channels, err := f.AsideChannels(f.ctx, workspace, t)
		f.must(err)
		return channels
	}
	same(f, "of before it came", before(came), []string{"C1"})
	same(f, "of before a moment later", before(came.Add(time.Second)), []string{"C1", "C2"})
	kept, err := f.AsideIn(f.ctx, workspace, "C1", 2)
	f.must(err)
	for i, k := range kept {
		same(f, "an envelope", k.Envelope, all[i].Envelope)
		f.must(f.DropAside(f.ctx, k.ID))
	}
	kept, err = f.AsideIn(f.ctx, workspace, "C1", 9)
	f.must(err)
	same(f, "what is left", slices.Collect(func(yield func([]byte) bool) {
		for _, k := range kept {
			yield(k.Envelope.Body)
		}
	}), [][]byte{{0, 2, 255}})
}

func asideKnown(f *fixture) {
	a := f.envelope(event.KindMessage, threadKey(1), "C1/1")
	custody := f.accept(a)
	same(f, "what is known", f.putAside(a), journal.Custody{ID: custody.ID, Duplicate: true})
	channels, err := f.AsideChannels(f.ctx, workspace, time.Time{})
	f.must(err)
	same(f, "channels", channels, nil)
}
