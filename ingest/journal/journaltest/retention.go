package journaltest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal"
	"parley/ingest/journal/files"
	"parley/ingest/journal/storage"
	"parley/ingest/stream"
)

func retentionPromises() []promise {
	return []promise{
		{"each table loses its old rows at its bound", pruned},
		{"the payload of a delivery stays for 8 days after the send", payloadsKept},
		{"pending envelopes stay", pendingKept},
		{"a pace that still holds something up stays", pacesKept},
		{"a young envelope stays, also if the clock went back after its accept", youngKept},
		{"envelopes of a clock that went back by years stop no others", futurePassed},
		{"dead letters keep their body as long as their key", deadLettersKept},
		{"a call of Prune continues where the last one ended", pruneResumes},
		{"each transaction of Prune is bounded", pruneBounded},
		{"ids of envelopes are not reused", idsNotReused},
		{"the rows of a removed workspace go after 30 days", workspaceRemoved},
		{"a workspace that is configured again keeps its rows", workspaceKept},
		{"a workspace that is configured again during a call of Prune loses no further rows", workspaceKeptMeanwhile},
		{"a workspace that another node has configured keeps its rows", workspaceElsewhere},
	}
}

func (f *fixture) prune() journal.Pruned {
	f.Helper()
	pruned, err := f.Prune(f.ctx, journal.DefaultRetention())
	f.must(err)
	return pruned
}

const day = 24 * time.Hour

func pruned(f *fixture) {
	a := f.envelope(event.KindMessage, threadKey(1), "C1/1")
	accepted := f.accept(a)
	f.record(accepted.Thread, accepted.ID, event.Event{Kind: event.KindMessage, Message: said("C1/1", "hi")}, triggers)
	reply := answer("Hello.", "Hello.")
	reply.Events = []stream.Message{{Type: stream.Thought, Text: "hm", Time: f.clock.Now()}, {Type: stream.Answer, Text: "Hello!", Time: f.clock.Now()}}
	f.commit(f.begin(threadKey(1)), reply)
	d := f.delivery(threadKey(1))
	f.slot(d, time.Second)
	_, err := f.Outbox.Sent(f.ctx, d, "C1/2")
	f.must(err)

	f.clock.advance(day)
	same(f, "before one idle day", f.prune(), journal.Pruned{})
	f.clock.advance(time.Minute)
	same(f, "after one idle day", f.prune(), journal.Pruned{"paces": 1})
	f.clock.advance(7*day - time.Hour)
	same(f, "before 8 days", f.prune(), journal.Pruned{})
	f.clock.advance(time.Hour)
	f.message(threadKey(1), said("C1/3", "young"), passive)
	same(f, "after 8 days", f.prune(), journal.Pruned{"bodies": 1, "payloads": 1})
	same(f, "body", len(f.body(accepted.ID)), 0)
	same(f, "deliveries", f.count("deliveries WHERE payload = '' AND platform_id = 'C1/2'"), 1)
	same(f, "known again", f.accept(a).Duplicate, true)
	f.clock.advance(22 * day)
	same(f, "after 30 days", f.prune(), journal.Pruned{"bodies": 1, "envelopes": 1})
	same(f, "known again", f.accept(a).Duplicate, false)
	f.clock.advance(60 * day)
	got := f.prune()
	same(f, "after 90 days", []int64{got["runs"], got["run_events"]}, []int64{1, 2})
	same(f, "runs and events", f.count("runs")+f.count("run_events"), 0)
	same(f, "thread", f.lines(threadKey(1)), []string{"1 hi", "2 Hello.", "3 young"})
	same(f, "once more", f.prune(), journal.Pruned{})
}

func payloadsKept(f *fixture) {
	f.exchange(threadKey(1), "C1/1", "hi", "Hello.", "Hello.")
	f.clock.advance(30 * day)
	f.message(threadKey(1), said("C1/2", "young"), passive)
	same(f, "before the send", f.prune()["payloads"], 0)
	f.deliver(threadKey(1), "C1/3")
	f.clock.advance(8*day - time.Minute)
	same(f, "before 8 days", f.prune()["payloads"], 0)
	f.clock.advance(2 * time.Minute)
	same(f, "after 8 days", f.prune()["payloads"], 1)
}

func pendingKept(f *fixture) {
	accepted := f.accept(f.envelope(event.KindMessage, threadKey(1), "C1/1"))
	waits := f.accept(f.envelope(event.KindReaction, "", "C1/1"))
	f.message(threadKey(2), said("C1/2", "done"), passive)
	f.message(threadKey(2), said("C1/3", "done"), passive)
	f.clock.advance(31 * day)
	same(f, "pruned", f.prune(), journal.Pruned{"bodies": 2, "envelopes": 2})
	same(f, "body", len(f.body(accepted.ID)) > 0 && len(f.body(waits.ID)) > 0, true)
	f.record(accepted.Thread, accepted.ID, event.Event{Kind: event.KindMessage, Message: said("C1/1", "late")}, passive)
	same(f, "after it is settled", f.prune()["envelopes"], 1)
}

func pacesKept(f *fixture) {
	f.slot(f.queuedIn(threadKey(1)), time.Second)
	f.clock.advance(2 * day)
	for _, column := range []string{"next_at", "blocked_until", "left_at"} {
		f.exec(`UPDATE paces SET `+column+` = $1`, f.clock.Now().UnixMilli())
		same(f, column, f.prune()["paces"], 0)
		f.exec(`UPDATE paces SET ` + column + ` = 0`)
	}
	same(f, "idle", f.prune()["paces"], 1)
}

func youngKept(f *fixture) {
	f.clock.advance(time.Hour)
	f.message(threadKey(1), said("C1/1", "young"), passive)
	f.clock.advance(-time.Hour)
	f.message(threadKey(1), said("C1/2", "old"), passive)
	f.clock.advance(8 * day)
	same(f, "after 8 days", f.prune(), journal.Pruned{"bodies": 1})
	f.clock.advance(22 * day)
	same(f, "after 30 days", f.prune(), journal.Pruned{"envelopes": 1})
	f.clock.advance(time.Hour)
	same(f, "later", f.prune(), journal.Pruned{"envelopes": 1})
}

func futurePassed(f *fixture) {
	f.clock.advance(1000 * day)
	f.many(250)
	f.clock.advance(-1000 * day)
	f.message(threadKey(1), said("C1/1", "old"), passive)
	f.clock.advance(time.Hour)
	f.message(threadKey(1), said("C1/2", "as if it came during the call"), passive)
	f.clock.advance(-time.Hour)
	same(f, "at once", f.prune(), journal.Pruned{})
	f.clock.advance(8*day + time.Hour)
	same(f, "after 8 days", f.prune(), journal.Pruned{"bodies": 2})
	f.clock.advance(22 * day)
	same(f, "after 30 days", f.prune(), journal.Pruned{"envelopes": 2})
	f.clock.advance(1000 * day)
	same(f, "years later", f.prune()["envelopes"], 250)
}

func deadLettersKept(f *fixture) {
	accepted := f.accept(f.envelope(event.KindMessage, threadKey(1), "C1/1"))
	f.must(f.Envelopes.Bury(f.ctx, f.claim(accepted.Thread), accepted.ID, errors.New("text: must be a string")))
	f.clock.advance(30*day - time.Hour)
	same(f, "pruned", f.prune(), journal.Pruned{})
	same(f, "body", len(f.body(accepted.ID)) > 0, true)
	f.clock.advance(time.Hour)
	same(f, "pruned", f.prune(), journal.Pruned{"envelopes": 1})
}

// many accepts envelopes that are settled at once.
func (f *fixture) many(n int) {
	f.Helper()
	for i := range n {
		a := f.envelope(event.KindOther, "", fmt.Sprint(i))
		a.Keys.Result = event.Ignore(event.ReasonNotAnEvent)
		f.accept(a)
	}
	f.exec(`UPDATE envelopes SET body = $1 WHERE kind = 'other'`, []byte("such an envelope once kept its body"))
}

func pruneResumes(f *fixture) {
	f.many(250)
	f.clock.advance(9 * day)
	ctx, cancel := context.WithCancel(f.ctx)
	ending := journal.New(&observed{Engine: f.engine, written: cancel}, journal.Options{Now: f.clock.Now})
	first, err := ending.Prune(ctx, journal.DefaultRetention())
	f.fails("a cancelled call", err, context.Canceled)
	same(f, "the first page", first, journal.Pruned{"bodies": 100})
	f.exec(`UPDATE envelopes SET body = $1`, []byte("again")) // rows before the position are not read again
	second, err := f.successor("second").Prune(f.ctx, journal.DefaultRetention())
	f.must(err)
	same(f, "the other pages", second, journal.Pruned{"bodies": 150})
}

// observed is an engine that calls functions before and after each write.
type observed struct {
	storage.Engine
	writes, written func() // nil for none
}

func (o *observed) Write(ctx context.Context, options storage.WriteOptions, fn func(storage.Tx) error) error {
	if o.writes != nil {
		o.writes()
	}
	err := o.Engine.Write(ctx, options, fn)
	if o.written != nil {
		o.written()
	}
	return err
}

func pruneBounded(f *fixture) {
	f.many(350)
	f.clock.advance(31 * day)
	most := &largest{Engine: f.engine}
	_, err := journal.New(most, journal.Options{Now: f.clock.Now}).Prune(f.ctx, journal.DefaultRetention())
	f.must(err)
	same(f, "rows left", f.count("envelopes"), 0)
	same(f, "rows of the largest transaction", most.rows, 100)
}

// largest is an engine that records the rows of its largest transaction.
type largest struct {
	storage.Engine
	rows int64
}

func (l *largest) Write(ctx context.Context, options storage.WriteOptions, fn func(storage.Tx) error) error {
	rows := int64(0)
	err := l.Engine.Write(ctx, options, func(tx storage.Tx) error {
		rows = 0
		return fn(changes{tx, &rows})
	})
	l.rows = max(l.rows, rows)
	return err
}

type changes struct {
	storage.Tx
	rows *int64
}

func (c changes) Exec(query string, args ...any) (int64, error) {
	n, err := c.Tx.Exec(query, args...)
	*c.rows += n
	return n, err
}

func idsNotReused(f *fixture) {
	old := f.accept(f.envelope(event.KindMessage, threadKey(1), "C1/1"))
	f.record(old.Thread, old.ID, event.Event{Kind: event.KindMessage, Message: said("C1/1", "old")}, passive)
	f.clock.advance(31 * day)
	f.prune()
	same(f, "envelopes", f.count("envelopes"), 0)
	young := f.accept(f.envelope(event.KindMessage, threadKey(1), "C1/3"))
	same(f, "another id", young.ID > old.ID, true)
}

// inWorkspaces creates every kind of row in two workspaces.
func (f *fixture) inWorkspaces() {
	f.Helper()
	f.must(f.Threads.Configured(f.ctx, []string{"acme", "umbrella"}))
	for _, id := range []string{"acme", "umbrella"} {
		for n := range 12 {
			key := event.ThreadKey(fmt.Sprintf("slack:%s:C1:%d", id, n))
			m := said(fmt.Sprintf("C1/%d", n), "see")
			m.Attachments = []event.Attachment{{ID: "F1", Name: "a.png"}}
			a := f.envelope(event.KindMessage, key, m.ExternalID)
			a.Envelope.Workspace = id
			a.LearnChannel = true
			a.Keys.Channel.Type = event.ChannelRoom
			accepted := f.accept(a)
			e := entry(accepted.ID, event.Event{Kind: event.KindMessage, Message: m}, triggers)
			e.Workspace = id
			_, err := f.Recorder.Record(f.ctx, f.claim(accepted.Thread), e)
			f.must(err)
			file := f.list(key)[0].Attachments[0]
			file.State, file.Bucket, file.Path = files.Stored, "attachments", "ab/"+id
			f.must(f.Files.SetAttachment(f.ctx, file, "sum"))
			reply := answer("Yes.", "Yes.", "And no.")
			reply.Events = []stream.Message{{Type: stream.Thought, Text: "hm", Time: f.clock.Now()}}
			run := f.begin(key)
			if n == 0 {
				_, err = f.launch(run.ID, id, fewWorkstreams)
				f.must(err)
			}
			f.keepSession(run, "one")
			f.offer(run)
			f.commit(run, reply)
			f.slot(f.delivery(key), time.Second)
		}
		f.must(f.Threads.AdapterState(id).Put(f.ctx, "cursor", "7"))
		f.must(f.Threads.OpenGaps(f.ctx, id, []event.Gap{{Channel: "C1", From: f.clock.Now(), Until: f.clock.Now()}}, f.clock.Now()))
	}
}

// rows counts the rows of each table that has rows of workspaces, runs or messages.
func (f *fixture) rows() map[string]int64 {
	f.Helper()
	counts := map[string]int64{}
	for _, table := range []string{
		"workspaces", "channels", "threads", "envelopes", "messages", "attachments", "runs", "run_events", "deliveries", "paces", "watermarks", "gaps", "adapter_state", "workstreams", "agent_sessions", "agent_choices",
	} {
		counts[table] = f.count(table)
	}
	return counts
}

func workspaceRemoved(f *fixture) {
	f.inWorkspaces()
	all := f.rows()
	f.must(f.Threads.Configured(f.ctx, []string{"acme"}))
	f.clock.advance(time.Hour)
	f.must(f.Threads.Configured(f.ctx, []string{"acme"}))
	f.prune()
	same(f, "at once", f.rows(), all)
	f.clock.advance(30*day - 2*time.Hour)
	old := journal.Retention{Envelopes: 30 * day, Keys: 30 * day, Runs: 90 * day, RunEvents: 90 * day}
	_, err := f.Prune(f.ctx, old)
	f.must(err)
	same(f, "before 30 days", f.count("messages"), all["messages"])
	f.clock.advance(time.Hour)
	old.Envelopes, old.Keys = 31*day, 30*day // the other workspace keeps its envelopes
	f.exec(`UPDATE envelopes SET accepted_at = accepted_at + 3600000`)
	most := &largest{Engine: f.engine}
	_, err = journal.New(most, journal.Options{Now: f.clock.Now}).Prune(f.ctx, old)
	f.must(err)
	same(f, "small transactions", most.rows <= 100, true)
	half := map[string]int64{}
	for table, n := range all {
		half[table] = n / 2
	}
	half["adapter_state"]++ // the secret of the ids of threads is of no workspace
	half["paces"] = 0       // their times have passed
	same(f, "after 30 days", f.rows(), half)
	same(f, "due copies", f.count("copies_to_check WHERE check_at = 0 AND path = 'ab/umbrella'"), 1)
	same(f, "all due copies", f.count("copies_to_check WHERE check_at = 0"), 1)
}

func workspaceKept(f *fixture) {
	f.inWorkspaces()
	f.must(f.Threads.Configured(f.ctx, []string{"acme"}))
	f.clock.advance(40 * day)
	f.must(f.Threads.Configured(f.ctx, []string{"acme", "umbrella"}))
	f.prune()
	same(f, "threads", f.count("threads"), 24)
}

func workspaceKeptMeanwhile(f *fixture) {
	f.inWorkspaces()
	all := f.count("messages")
	f.must(f.Threads.Configured(f.ctx, []string{"acme"}))
	f.clock.advance(31 * day)
	var left map[string]int64
	again := &observed{Engine: f.engine, written: func() {
		if left == nil && f.count("messages") < all {
			f.must(f.Threads.Configured(f.ctx, []string{"acme", "umbrella"}))
			left = f.rows()
		}
	}}
	_, err := journal.New(again, journal.Options{Now: f.clock.Now}).Prune(f.ctx, journal.DefaultRetention())
	f.must(err)
	same(f, "rows", f.rows(), left)
}

func workspaceElsewhere(f *fixture) {
	f.inWorkspaces()
	for range 3 {
		f.clock.advance(20 * day)
		f.must(f.Threads.Configured(f.ctx, []string{"acme"}))
		f.prune()
		f.must(f.Threads.Configured(f.ctx, []string{"umbrella"}))
	}
	same(f, "threads", f.count("threads"), 24)
}
