package journaltest

import (
	"time"

	"parley/ingest/journal"
)

func historyPromises() []promise {
	return []promise{
		{"the history of a thread is read day by day", historyByDay},
		{"imported messages do not hide the newer days of a history", historyOfImport},
		{"a history has no notices, and no messages that are deleted or not stored", historyShown},
	}
}

// day returns the history of a thread on the newest day before a time.
func (f *fixture) day(n int, before time.Time) journal.HistoryDay {
	f.Helper()
	t, err := f.Thread(f.ctx, workspace, journal.ThreadUUID(threadKey(n)))
	f.must(err)
	day, err := f.HistoryDay(f.ctx, &t, before)
	f.must(err)
	return day
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
	f.message(threadKey(1), said("C1/2", "question"), runs)
	f.fail(f.begin(threadKey(1)), "sorry")
	f.message(threadKey(1), said("C1/noted", "noted"), noted)
	f.exchange(threadKey(1), "C1/3", "again", "answer")
	same(f, "messages", contents(f.day(1, time.Time{}).Messages), []string{"question", "again", "answer"})
}
