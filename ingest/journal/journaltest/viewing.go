package journaltest

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal"
)

func viewingPromises() []promise {
	return []promise{
		{"a person's view is stored with their further messages in that thread", viewingGoesWith},
		{"the newest event decides a person's view", viewingNewest},
	}
}

// looks returns an event of a person's view, at a second of 1970.
func looks(second int64, at string) event.Event {
	v := &event.Viewing{SenderID: "slack:U1", At: time.Unix(second, 0)}
	if at != "" {
		v.Extra = []event.Extra{{Key: "looks_at", Value: json.RawMessage(strconv.Quote(at))}}
	}
	return event.Event{Kind: event.KindOther, Viewing: v}
}

// look records the event in the first thread.
func (f *fixture) look(e event.Event) journal.Outcome {
	f.Helper()
	accepted := f.accept(f.envelope(event.KindOther, threadKey(1), ""))
	return f.record(accepted.Thread, accepted.ID, e, passive)
}

// looksAt returns the views of the thread's messages.
func (f *fixture) looksAt(thread event.ThreadKey) []string {
	f.Helper()
	return each(f.list(thread), func(m journal.Listed) string {
		metadata, err := event.ReadMetadata(m.Metadata)
		f.must(err)
		for _, e := range metadata.Extra {
			if e.Key == "looks_at" {
				return string(e.Value)
			}
		}
		return ""
	})
}

func viewingGoesWith(f *fixture) {
	f.message(threadKey(1), said("C1/0", "before"), passive)
	opened := looks(1, "C7")
	opened.Viewing.Opened = true
	outcome := f.look(opened)
	same(f, "fate", outcome.Fate, event.Fate{Disposition: event.Updated})
	same(f, "opened", outcome.Opened, true)
	same(f, "messages", len(f.list(threadKey(1))), 1)
	f.message(threadKey(1), said("C1/1", "hi"), passive)
	f.message(threadKey(2), said("C1/2", "elsewhere"), passive)
	again := looks(2, "C8")
	again.Viewing.Opened = true
	same(f, "opened again", f.look(again).Opened, false)
	f.message(threadKey(1), said("C1/3", "ho"), passive)
	f.change(threadKey(1), edited("C1/1", "hi!", "2"), passive)
	same(f, "views", f.looksAt(threadKey(1)), []string{"", `"C7"`, `"C8"`})
	same(f, "elsewhere", f.looksAt(threadKey(2)), []string{""})
	f.look(looks(3, ""))
	f.message(threadKey(1), said("C1/4", "hum"), passive)
	same(f, "views", f.looksAt(threadKey(1)), []string{"", `"C7"`, `"C8"`, ""})
}

func viewingNewest(f *fixture) {
	noChange := *event.Ignore(event.ReasonNoChange)
	same(f, "the first", f.look(looks(5, "C7")).Disposition, event.Updated)
	same(f, "an older event", f.look(looks(4, "C8")).Fate, noChange)
	same(f, "the same", f.look(looks(6, "C7")).Fate, noChange)
	same(f, "an even older event", f.look(looks(5, "C9")).Fate, noChange)
	same(f, "too much", f.look(looks(8, strings.Repeat("C", 5000))).Fate, noChange)
	f.message(threadKey(1), said("C1/1", "hi"), passive)
	same(f, "a newer event", f.look(looks(7, "C9")).Disposition, event.Updated)
	f.message(threadKey(1), said("C1/2", "ho"), passive)
	same(f, "views", f.looksAt(threadKey(1)), []string{`"C7"`, `"C9"`})
}
