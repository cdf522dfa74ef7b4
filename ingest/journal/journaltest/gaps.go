package journaltest

import (
	"errors"
	"sync"
	"time"

	"parley/ingest/event"
)

func gapPromises() []promise {
	return []promise{
		{"a watermark moves on and never back", watermarkMovesOn},
		{"a gap is stored with the watermark, is widened, and closes after its read", gapCloses},
		{"a gap that was widened meanwhile keeps its unread part", gapWidened},
		{"times of a clock that led are pulled back to the last known arrival", pulledBack},
		{"gaps are widened and closed concurrently", gapsSideBySide},
		{"recent threads are those of one channel, answered ones first, by newest message", recentThreads},
		{"a message of which only the id is stored makes no thread recent", notedNotRecent},
		{"recent threads do not depend on the messages of other workspaces", recentBesideMany},
	}
}

func moment(micro int64) time.Time {
	return time.UnixMicro(1_700_000_000_000_000 + micro).UTC()
}

// between returns a gap.
func between(channel string, from, until int64) event.Gap {
	return event.Gap{Channel: channel, From: moment(from), Until: moment(until)}
}

func (f *fixture) watermark() time.Time {
	f.Helper()
	watermark, _, err := f.Threads.Gaps(f.ctx, workspace, f.clock.Now().Add(time.Hour))
	f.must(err)
	return watermark
}

func (f *fixture) gaps() []event.Gap {
	f.Helper()
	_, gaps, err := f.Threads.Gaps(f.ctx, workspace, f.clock.Now().Add(time.Hour))
	f.must(err)
	return gaps
}

func (f *fixture) opens(gaps ...event.Gap) {
	f.Helper()
	f.must(f.Threads.OpenGaps(f.ctx, workspace, gaps, time.Time{}))
}

func watermarkMovesOn(f *fixture) {
	same(f, "at first", f.watermark(), time.Time{})
	f.must(f.Threads.OpenGaps(f.ctx, workspace, nil, moment(1)))
	f.must(f.Threads.OpenGaps(f.ctx, "other", nil, moment(9)))
	f.must(f.Threads.OpenGaps(f.ctx, workspace, nil, moment(3)))
	f.must(f.Threads.OpenGaps(f.ctx, workspace, nil, moment(2)))
	f.opens(between("C1", 7, 8))
	same(f, "the watermark", f.watermark(), moment(3))
}

func gapCloses(f *fixture) {
	same(f, "at first", f.gaps(), nil)
	f.must(f.Threads.OpenGaps(f.ctx, workspace, []event.Gap{between("C2", 2, 10), between("C1", 3, 10)}, moment(10)))
	f.must(f.Threads.OpenGaps(f.ctx, "other", []event.Gap{between("C1", 0, 10)}, moment(10)))
	same(f, "the watermark", f.watermark(), moment(10))
	f.opens(between("C1", 1, 4))
	same(f, "widened", f.gaps(), []event.Gap{between("C1", 1, 10), between("C2", 2, 10)})
	f.must(f.Threads.CloseGap(f.ctx, workspace, between("C1", 1, 10), 0))
	f.must(f.Threads.CloseGap(f.ctx, workspace, between("C3", 1, 10), 0))
	same(f, "remaining gap", f.gaps(), []event.Gap{between("C2", 2, 10)})
}

func gapWidened(f *fixture) {
	f.opens(between("C1", 1, 10), between("C2", 1, 10))
	f.opens(between("C1", 10, 20), between("C2", 0, 20))
	f.must(f.Threads.CloseGap(f.ctx, workspace, between("C1", 1, 10), 0))
	f.must(f.Threads.CloseGap(f.ctx, workspace, between("C2", 1, 10), 0))
	same(f, "remaining gap", f.gaps(), []event.Gap{between("C2", 0, 20), between("C1", 10, 20)})
	f.must(f.Threads.CloseGap(f.ctx, workspace, between("C2", 0, 15), moment(3).Sub(moment(0))))
	f.must(f.Threads.CloseGap(f.ctx, workspace, between("C1", 10, 15), moment(7).Sub(moment(0))))
	same(f, "remaining gap with a lag", f.gaps(), []event.Gap{between("C1", 10, 20), between("C2", 12, 20)})
}

func gapsSideBySide(f *fixture) {
	var going sync.WaitGroup
	errs := make([]error, 16)
	for i := range int64(8) {
		going.Go(func() {
			errs[2*i] = f.Threads.OpenGaps(f.ctx, workspace, []event.Gap{between("C1", 10-i, 20+i)}, moment(i))
		})
		going.Go(func() { errs[2*i+1] = f.Threads.CloseGap(f.ctx, workspace, between("C1", i, i+1), 0) })
	}
	going.Wait()
	f.must(errors.Join(errs...))
	same(f, "the gap's end", f.gaps()[0].Until, moment(27))
}

func (f *fixture) recent(channel string, since time.Duration, limit int) []event.ThreadKey {
	f.Helper()
	threads, err := f.Threads.RecentThreads(f.ctx, workspace, channel, f.clock.Now().Add(-since), limit)
	f.must(err)
	return threads
}

func recentThreads(f *fixture) {
	f.message(threadKey(1), said("C1/1", "first"), passive)
	f.clock.advance(time.Hour)
	f.message(threadKey(2), said("C1/2", "second"), passive)
	f.message(threadKey(3), said("C1/3", "third"), passive)
	f.clock.advance(time.Second)
	f.message(threadKey(2), said("C1/4", "again"), passive)
	f.clock.advance(time.Second)
	f.message(threadKey(4), said("C1/5", "unanswered"), passive)
	same(f, "of the last hours", f.recent("C1", 2*time.Hour, 10), []event.ThreadKey{threadKey(2), threadKey(4), threadKey(3), threadKey(1)})
	same(f, "of the last minute", f.recent("C1", time.Minute, 10), []event.ThreadKey{threadKey(2), threadKey(4), threadKey(3)})
	same(f, "the latest answered thread", f.recent("C1", 2*time.Hour, 1), []event.ThreadKey{threadKey(2)})
	same(f, "of another channel", f.recent("C2", 2*time.Hour, 10), nil)
	none, err := f.Threads.RecentThreads(f.ctx, "other", "C1", time.Time{}, 10)
	f.must(err)
	same(f, "of another workspace", none, nil)
}

func notedNotRecent(f *fixture) {
	f.message(threadKey(1), said("C1/1", "old"), passive)
	f.clock.advance(time.Hour)
	f.message(threadKey(1), said("C1/2", "noted"), noted)
	f.message(threadKey(2), said("C1/3", "noted"), noted)
	same(f, "of the last minute", f.recent("C1", time.Minute, 10), nil)
	same(f, "of the last hours", f.recent("C1", 2*time.Hour, 10), []event.ThreadKey{threadKey(1)})
}

// recentBesideMany is a regression test: a busy workspace hid the threads of the others.
func recentBesideMany(f *fixture) {
	f.message(threadKey(1), said("C1/1", "quiet"), passive)
	f.exec(`INSERT INTO messages (id, thread, seq, workspace, sender_id, author, trigger, content, metadata, version, origin, sent_at, created_at)
		WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 6000)
		SELECT 'x' || CAST(i AS TEXT), 1000, i, 'busy', 'x', 'human', 'passive', 'loud', metadata, 1, 'live', m.sent_at, m.created_at FROM n, messages m WHERE m.external_id = 'C1/1'`)
	same(f, "recent", f.recent("C1", time.Minute, 10), []event.ThreadKey{threadKey(1)})
}

func pulledBack(f *fixture) {
	now := f.clock.Now()
	old := said("C1/1", "hi")
	old.SentAt = now.Add(-time.Hour)
	f.message(threadKey(1), old, passive)
	led := now.Add(12 * time.Hour)
	f.must(f.Threads.OpenGaps(f.ctx, workspace, []event.Gap{{Channel: "C1", From: now.Add(-2 * time.Hour), Until: led}, {Channel: "C2", From: led, Until: led.Add(time.Hour)}}, led))
	f.must(f.Threads.OpenGaps(f.ctx, "other", nil, led))
	for range 2 { // the second time from the store
		watermark, gaps, err := f.Threads.Gaps(f.ctx, workspace, now)
		f.must(err)
		same(f, "watermark", watermark, old.SentAt)
		same(f, "gaps", gaps, []event.Gap{{Channel: "C1", From: now.Add(-2 * time.Hour), Until: now}, {Channel: "C2", From: old.SentAt, Until: now}})
	}
	watermark, _, err := f.Threads.Gaps(f.ctx, "other", now)
	f.must(err)
	same(f, "watermark of a workspace without messages", watermark, now.Add(-24*time.Hour))
	f.must(f.Threads.OpenGaps(f.ctx, workspace, nil, now.Add(time.Minute)))
	same(f, "the watermark moves on", f.watermark(), now.Add(time.Minute))
}
