package journaltest

import (
	"fmt"
	"strings"
	"time"

	"parley/ingest/journal/messages"
)

func historyPromises() []promise {
	return []promise{
		{"the history of a thread is read day by day", historyByDay},
		{"imported messages do not hide the newer days of a history", historyOfImport},
		{"a page of messages and a day of history end at 4 MiB, and tell where to go on", pagesAreBounded},
		{"a history has no notices, and no messages that are deleted or not stored", historyShown},
	}
}

// day returns the history of a thread on the newest day before a time.
func (f *fixture) day(n int, before time.Time) messages.HistoryDay {
	f.Helper()
	t, err := f.Threads.Thread(f.ctx, workspace, f.threadID(threadKey(n)))
	f.must(err)
	day, err := f.Messages.HistoryDay(f.ctx, &t, before, 0)
	f.must(err)
	return day
}

func pagesAreBounded(f *fixture) {
	long := strings.Repeat("a", 1<<20)
	for n := range 10 {
		f.message(threadKey(1), said(fmt.Sprint("C1/", n), long), passive)
	}
	t, err := f.Threads.Thread(f.ctx, workspace, f.threadID(threadKey(1)))
	f.must(err)
	var pages, days []int
	for after := int64(0); ; {
		page, err := f.Messages.ThreadMessages(f.ctx, workspace, t.ID, messages.Page{After: after, Limit: 100})
		f.must(err)
		if pages = append(pages, len(page)); !messages.IsFull(page, 100) {
			break
		}
		after = page[len(page)-1].Seq
	}
	same(f, "messages of the pages", pages, []int{4, 4, 2})
	for before := int64(0); ; {
		day, err := f.Messages.HistoryDay(f.ctx, &t, time.Time{}, before)
		f.must(err)
		days = append(days, len(day.Messages))
		same(f, "there is more", day.More, day.Next > 0)
		if before = day.Next; before == 0 {
			break
		}
	}
	same(f, "messages of the history", days, []int{4, 4, 2})
}

func historyByDay(f *fixture) {
	midnight := f.clock.Now().UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)
	at := func(after time.Duration) { f.clock.advance(midnight.Add(after).Sub(f.clock.Now())) }
	at(0)
	f.message(threadKey(1), said("C1/1", "first"), passive)
	at(24*time.Hour - time.Millisecond)
	f.message(threadKey(1), said("C1/2", "last"), passive)
	f.message(threadKey(2), said("C1/3", "elsewhere"), passive)
	at(72 * time.Hour)
	f.message(threadKey(1), said("C1/4", "later"), passive)
	for _, c := range []struct {
		before time.Time
		begin  time.Time
		want   []string
		more   bool
	}{
		{time.Time{}, midnight.Add(72 * time.Hour), []string{"later"}, true},
		{midnight.Add(96 * time.Hour), midnight.Add(72 * time.Hour), []string{"later"}, true},
		{midnight.Add(72 * time.Hour), midnight, []string{"first", "last"}, false},
		{midnight.Add(24 * time.Hour), midnight, []string{"first", "last"}, false},
		{midnight, time.Time{}, []string{}, false},
	} {
		day := f.day(1, c.before)
		same(f, "begin", day.Begin.Equal(c.begin), true)
		same(f, "messages", contents(day.Messages), c.want)
		same(f, "more", day.More, c.more)
	}
}

func historyOfImport(f *fixture) {
	f.message(threadKey(1), said("C1/1", "today"), passive)
	today := f.clock.Now().UTC().Truncate(24 * time.Hour)
	old := f.past("old", "yesterday")
	old.CreatedAt = today.Add(-time.Hour)
	f.imports(old)
	newest, before := f.day(1, time.Time{}), f.day(1, today)
	same(f, "newest day", contents(newest.Messages), []string{"today"})
	same(f, "more", newest.More, true)
	same(f, "day before", contents(before.Messages), []string{"yesterday"})
}

func historyShown(f *fixture) {
	f.message(threadKey(1), said("C1/1", "deleted"), passive)
	f.change(threadKey(1), deleted("C1/1"), passive)
	f.message(threadKey(1), said("C1/2", "question"), triggers)
	f.fail(f.begin(threadKey(1)), "sorry")
	f.message(threadKey(1), said("C1/noted", "noted"), noted)
	f.exchange(threadKey(1), "C1/3", "again", "answer")
	same(f, "messages", contents(f.day(1, time.Time{}).Messages), []string{"question", "again", "answer"})
}
