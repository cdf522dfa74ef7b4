package journaltest_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal"
	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/record"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/sqlite"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
	"parley/ingest/work"
)

// recorder is an engine that records the text of each statement, and counts transactions.
type recorder struct {
	storage.Engine
	mu         sync.Mutex
	statements []string
	commits    int
}

func (r *recorder) Write(ctx context.Context, o storage.WriteOptions, fn func(storage.Tx) error) error {
	r.commits++
	return r.Engine.Write(ctx, o, func(tx storage.Tx) error { return fn(recorded{tx, r}) })
}

func (r *recorder) Read(ctx context.Context, fn func(storage.Tx) error) error {
	return r.Engine.Read(ctx, func(tx storage.Tx) error { return fn(recorded{tx, r}) })
}

func (r *recorder) ReadOne(ctx context.Context, fn func(storage.Tx) error) error {
	return r.Engine.ReadOne(ctx, func(tx storage.Tx) error { return fn(recorded{tx, r}) })
}

// taken returns the records since the last call.
func (r *recorder) taken() (statements []string, commits int) {
	statements, commits = r.statements, r.commits
	r.statements, r.commits = nil, 0
	return statements, commits
}

type recorded struct {
	storage.Tx
	to *recorder
}

func (t recorded) note(query string) {
	t.to.mu.Lock()
	defer t.to.mu.Unlock()
	t.to.statements = append(t.to.statements, query)
}

func (t recorded) Exec(query string, args ...any) (int64, error) {
	t.note(query)
	return t.Tx.Exec(query, args...)
}

func (t recorded) Row(dest []any, query string, args ...any) (bool, error) {
	t.note(query)
	return t.Tx.Row(dest, query, args...)
}

func (t recorded) Rows(each func(func(...any) error) error, query string, args ...any) error {
	t.note(query)
	return t.Tx.Rows(each, query, args...)
}

func (t recorded) Later(none error, dest []any, query string, args ...any) error {
	t.note(query)
	return t.Tx.Later(none, dest, query, args...)
}

// conversation is a journal whose statements are recorded, and one thread in it.
type conversation struct {
	*testing.T
	*journal.Journal
	recorder *recorder
	path     string
}

func newConversation(t *testing.T) *conversation {
	t.Helper()
	path := filepath.Join(t.TempDir(), "parley.db")
	engine, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close() })
	r := &recorder{Engine: engine}
	return &conversation{T: t, Journal: journal.New(r, journal.Options{Node: "a", Remembered: journal.DefaultRemembered}), recorder: r, path: path}
}

func (c *conversation) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

// record accepts and records an event, on a node that could answer it at once.
func (c *conversation) record(key string, e event.Event, target string) (record.Result, *threads.Claim) {
	c.Helper()
	keys := event.Keys{Kind: e.Kind, Dedupe: key, Thread: "slack:acme:C1:1", Channel: event.Channel{ID: "C1"}, MessageID: target}
	accepted, err := c.Envelopes.Accept(c.Context(), envelopes.AcceptRequest{
		Envelope: event.Envelope{Workspace: "acme", Platform: event.Slack, Transport: "http", Body: []byte("{}")}, Keys: keys, Claim: true,
	})
	c.must(err)
	claim := &threads.Claim{Thread: accepted.Thread, Fence: accepted.Fence, Key: accepted.Key}
	result, err := c.Recorder.Record(c.Context(), claim, record.Entry{
		Envelope: accepted.ID, MessageUUID: accepted.MessageUUID, Workspace: "acme", Event: e, Origin: messages.Live, Agent: "helper", Begin: true,
		Decide: func(m *event.Message, _ record.Look) record.Decision {
			return record.Decision{Trigger: messages.TriggerRun, Reason: event.ReasonMention, Metadata: m.Metadata.Bytes()}
		},
	})
	c.must(err)
	return result, claim
}

// ask accepts and records a message, and begins its run.
func (c *conversation) ask(id string) (*runs.Run, *threads.Claim) {
	c.Helper()
	result, claim := c.record("message:"+id, event.Event{Kind: event.KindMessage, Message: &event.Message{
		ExternalID: id, Content: "hello", Channel: event.Channel{ID: "C1"}, SentAt: time.Now(), Quoted: &event.Quote{ExternalID: "C1/1"},
		Metadata: event.Metadata{Source: "slack", SenderID: "slack:U1", SenderDisplayName: "Olivia", SenderType: event.Human},
	}}, id)
	if result.Begun == nil {
		c.Fatal("no run began with the message")
	}
	return result.Begun, claim
}

// exchange is a message and its answer: accept, record and begin, end, sent.
func (c *conversation) exchange(id string) {
	c.Helper()
	run, claim := c.ask(id)
	ended, err := c.Runs.CommitReply(c.Context(), claim, run, runs.Reply{
		Content: "Hello.", Stale: "send", Attempt: runs.Attempt{BegunAt: time.Now()}, Posts: []outbox.Post{{Channel: "C1", Place: "1", Text: "Hello."}}, Send: &outbox.Send{Timeout: time.Second},
		Metadata: func(string, time.Duration) []byte { return []byte("{}") },
	})
	c.must(err)
	if ended.Begun == nil {
		c.Fatal("the delivery did not begin with the reply")
	}
	if _, err := c.Outbox.Sent(c.Context(), ended.Begun, id+"/reply"); err != nil {
		c.Fatal(err)
	}
}

// TestStatementsOfAMessage proves that a message in a new or idle thread takes at most
// eleven statements and four transactions from the accept to the recorded delivery, and one
// statement more because it quotes another message.
func TestStatementsOfAMessage(t *testing.T) {
	c := newConversation(t)
	c.threadID() // the first one makes the store's secret
	c.recorder.taken()
	for _, thread := range []string{"new", "idle"} {
		c.exchange("C1/" + thread)
		statements, commits := c.recorder.taken()
		t.Logf("%s thread: %d statements in %d transactions:\n%s", thread, len(statements), commits, strings.Join(statements, "\n"))
		if len(statements) > 12 || commits > 4 {
			t.Errorf("%s thread: %d statements in %d transactions", thread, len(statements), commits)
		}
	}
}

// TestNoStatementScansATable proves that no statement of a message, an edit or a delete
// reads a whole table. So the cost of none of them grows with the store or with the
// thread. The second delete is of a reply.
func TestNoStatementScansATable(t *testing.T) {
	c := newConversation(t)
	c.exchange("C1/1")
	c.exchange("C1/2")
	c.record("edit:1", event.Event{Kind: event.KindEdit, Targets: []string{"C1/1"}, Message: &event.Message{
		ExternalID: "C1/1", Content: "hello, hello", Revision: "2", Channel: event.Channel{ID: "C1"},
		Metadata: event.Metadata{Source: "slack", SenderID: "slack:U1", SenderDisplayName: "Olivia", SenderType: event.Human},
	}}, "C1/1")
	c.record("delete:1", event.Event{Kind: event.KindDelete, Targets: []string{"C1/1"}}, "C1/1")
	c.record("delete:2", event.Event{Kind: event.KindDelete, Targets: []string{"C1/2/reply"}}, "C1/2/reply")
	for statement, plan := range c.plans() {
		for _, table := range []string{"threads", "envelopes", "messages", "deliveries", "runs", "attachments", "copies_to_check"} {
			if strings.Contains(plan, "SCAN "+table) {
				t.Errorf("%s\nreads all of %s:\n%s", statement, table, plan)
			}
		}
	}
}

// TestTheCheckOfAnAttachedCopyReadsNoDelivery proves that the cost of the check, which each copy
// gets, does not grow with the files that agents have posted.
func TestTheCheckOfAnAttachedCopyReadsNoDelivery(t *testing.T) {
	c := newConversation(t)
	file := event.Attachment{Name: "a.png", Copy: &event.Copy{Bucket: "attachments", Path: "ab/cd"}}
	c.record("message:1", event.Event{Kind: event.KindMessage, Message: &event.Message{
		ExternalID: "C1/1", Content: "look", Channel: event.Channel{ID: "C1"}, Attachments: []event.Attachment{file},
		Metadata: event.Metadata{Source: "slack", SenderID: "slack:U1", SenderDisplayName: "Olivia", SenderType: event.Human},
	}}, "C1/1")
	c.must(c.Files.HoldCopy(c.Context(), "attachments", "ab/cd", 0))
	c.recorder.taken()
	c.must(c.Files.RemoveCopies(c.Context(), func(_ context.Context, _, path string) error { return errors.New("removed " + path) }))
	statements, _ := c.recorder.taken()
	for _, statement := range statements {
		if strings.Contains(statement, "FROM deliveries") {
			t.Error(statement)
		}
	}
}

// TestTranscriptReadsTheWindow proves that the earlier turns of a thread are found in the order
// in which the window takes them. So the cost of a turn does not grow with its thread.
func TestTranscriptReadsTheWindow(t *testing.T) {
	c := newConversation(t)
	c.exchange("C1/1")
	run, _ := c.ask("C1/2")
	c.recorder.taken()
	turns, err := c.Runs.Transcript(c.Context(), run, runs.Window{Turns: 50, Bytes: 1000, Context: 20})
	c.must(err)
	if len(turns) != 2 {
		t.Fatalf("%d turns", len(turns))
	}
	plans := c.plans()
	if len(plans) != 1 {
		t.Errorf("%d statements", len(plans))
	}
	for statement, plan := range plans {
		if !strings.Contains(plan, "USING INDEX messages_turns (thread=?)") || strings.Contains(plan, "ORDER BY") {
			t.Errorf("%s\nsorts the turns of the thread:\n%s", statement, plan)
		}
	}
}

// TestAStoredThreadHistoryIsNotReadAgain proves that the first turn of a thread takes its messages from memory,
// after one look at the thread's row.
func TestAStoredThreadHistoryIsNotReadAgain(t *testing.T) {
	c := newConversation(t)
	run, claim := c.ask("C1/2")
	before := func(id, text string) record.Read {
		return record.Read{Metadata: []byte("{}"), Message: &event.Message{ExternalID: id, Content: text, Channel: event.Channel{ID: "C1"}, SentAt: time.UnixMilli(1)}}
	}
	c.must(c.Recorder.SetThreadHistory(c.Context(), claim, run, runs.ThreadHistory{Root: "C1/1"}, []record.Read{before("C1/1", "root"), before("C1/1.5", "reply")}))
	c.recorder.taken()
	turns, err := c.Runs.Transcript(c.Context(), run, runs.Window{Turns: 50, Bytes: 1000, Context: 20})
	c.must(err)
	if len(turns) != 1 || turns[0].Root == nil || turns[0].Root.Content != "root" || len(turns[0].Context) != 1 || turns[0].Context[0].Content != "reply" || len(turns[0].Messages) != 1 {
		t.Errorf("%+v", turns)
	}
	if statements, _ := c.recorder.taken(); len(statements) != 1 || !strings.HasPrefix(statements[0], "SELECT changed FROM threads") {
		t.Errorf("%d statements:\n%s", len(statements), strings.Join(statements, "\n"))
	}
}

// threadID returns the UUID of the thread.
func (c *conversation) threadID() string {
	c.Helper()
	id, err := c.Threads.ThreadID(c.Context(), "slack:acme:C1:1")
	c.must(err)
	return id
}

// TestThreadChangesReadsTheChangesAlone proves that the cost of a stream's poll does not grow with
// its thread.
func TestThreadChangesReadsTheChangesAlone(t *testing.T) {
	c := newConversation(t)
	c.exchange("C1/1")
	thread, err := c.Threads.Thread(c.Context(), "acme", c.threadID())
	c.must(err)
	c.recorder.taken()
	_, err = c.Messages.ThreadChanges(c.Context(), &thread, 10, time.Now(), 10)
	c.must(err)
	for statement, plan := range c.plans() {
		if strings.Contains(plan, "messages_seq") {
			t.Errorf("%s\nreads the whole thread:\n%s", statement, plan)
		}
	}
}

// TestClientsReadNoWholeThreadOrWorkspace proves that the cost of a thread's senders, and of a run
// under a client's name, does not grow with the thread and the number of threads.
func TestClientsReadNoWholeThreadOrWorkspace(t *testing.T) {
	c := newConversation(t)
	c.exchange("C1/1")
	thread, err := c.Threads.Thread(c.Context(), "acme", c.threadID())
	c.must(err)
	c.recorder.taken()
	_, err = c.Messages.Senders(c.Context(), &thread)
	c.must(err)
	if _, err := c.Runs.NamedRun(c.Context(), "acme", "", thread.ID, "run"); !errors.Is(err, storage.ErrNotFound) {
		t.Fatal(err)
	}
	if _, err := c.Runs.LaterRun(c.Context(), "run"); !errors.Is(err, storage.ErrNotFound) {
		t.Fatal(err)
	}
	_, err = c.Threads.ThreadsOf(c.Context(), "acme", "user:1", true, "", 10)
	c.must(err)
	_, err = c.Messages.NewsOf(c.Context(), "acme", "user:1", true, 0, 10)
	c.must(err)
	for statement, plan := range c.plans() {
		if strings.Contains(plan, "SCAN participants") || strings.Contains(plan, "SCAN threads") || strings.Contains(plan, "SCAN news") || strings.Contains(plan, "SCAN p") {
			t.Errorf("%s\nreads all rows of a table:\n%s", statement, plan)
		}
		if strings.Contains(plan, "SCAN m") || strings.Contains(plan, "messages_seq (thread=?)") || strings.Contains(plan, "threads_last") || strings.Contains(plan, "SCAN t") ||
			strings.Contains(plan, "SCAN e") || strings.Contains(plan, "envelopes e") && !strings.Contains(plan, "envelopes_run") {
			t.Errorf("%s\nreads the whole thread, all threads, or all envelopes that wait:\n%s", statement, plan)
		}
	}
}

// TestDeadLettersAreFoundByTheirIndex proves that the cost of their list does not grow with the store.
func TestDeadLettersAreFoundByTheirIndex(t *testing.T) {
	c := newConversation(t)
	c.exchange("C1/1")
	c.recorder.taken()
	_, err := c.Listing.DeadLetters(c.Context(), 0, 10)
	c.must(err)
	if _, err := c.Listing.DeadLetter(c.Context(), 1); !errors.Is(err, storage.ErrNotFound) {
		t.Fatal(err)
	}
	for statement, plan := range c.plans() {
		if !strings.Contains(plan, "SEARCH e USING") || strings.Contains(plan, "SCAN") || strings.Contains(plan, "ORDER BY") {
			t.Errorf("%s\nreads more than the dead letters:\n%s", statement, plan)
		}
	}
}

// TestCountsReadIndexes proves that the cost of a daemon's state does not grow with the settled rows.
func TestCountsReadIndexes(t *testing.T) {
	c := newConversation(t)
	c.exchange("C1/1")
	c.recorder.taken()
	_, err := c.Listing.Counts(c.Context(), []string{"acme"})
	c.must(err)
	for statement, plan := range c.plans() {
		for line := range strings.Lines(plan) {
			if strings.HasPrefix(line, "SCAN deliveries\n") || strings.HasPrefix(line, "SCAN envelopes\n") || strings.HasPrefix(line, "SCAN threads\n") || strings.HasPrefix(line, "SCAN messages\n") {
				t.Errorf("%s\nreads a whole table:\n%s", statement, plan)
			}
		}
	}
}

// TestDeliveriesAreListedByAnIndex proves that the cost of a page does not grow with the store.
func TestDeliveriesAreListedByAnIndex(t *testing.T) {
	c := newConversation(t)
	c.exchange("C1/1")
	c.recorder.taken()
	for state, index := range map[string]string{"": "INTEGER PRIMARY KEY", "unknown": "deliveries_ended", "failed": "deliveries_ended", "dropped": "deliveries_ended", "pending": "deliveries_", "sending": "deliveries_"} {
		var states []string
		if state != "" {
			states = []string{state}
		}
		_, err := c.Listing.Deliveries(c.Context(), states, 0, 10)
		c.must(err)
		for statement, plan := range c.plans() {
			if !strings.Contains(plan, index) || strings.Contains(plan, "SCAN o\n") || strings.Contains(plan, "SCAN t\n") {
				t.Errorf("%s\nis planned as:\n%s", statement, plan)
			}
		}
	}
}

// TestDueDeliveriesAreFoundByTheirIndexes proves that a look for due deliveries reads the pending ones in the order of their times, and else
// only those that are sending.
func TestDueDeliveriesAreFoundByTheirIndexes(t *testing.T) {
	c := newConversation(t)
	run, claim := c.ask("C1/1")
	_, err := c.Runs.CommitReply(c.Context(), claim, run, runs.Reply{
		Content: "Hello.", Stale: "send", Attempt: runs.Attempt{BegunAt: time.Now()}, Posts: []outbox.Post{{Channel: "C1", Place: "1", Text: "Hello."}},
		Metadata: func(string, time.Duration) []byte { return []byte("{}") },
	})
	c.must(err)
	c.recorder.taken()
	ctx, stop := context.WithCancel(c.Context())
	c.must(work.New(c.recorder, work.Options{Node: "a", Log: slog.New(slog.DiscardHandler)}).Serve(ctx, work.Queue{Kind: work.Deliveries, Slots: 1, Do: func(context.Context, *work.Claim) error {
		stop()
		return nil
	}}))
	for statement, plan := range c.plans() {
		if !strings.Contains(statement, "due_at") {
			continue
		}
		if !strings.Contains(plan, "SCAN d USING INDEX deliveries_due") || !strings.Contains(plan, "SEARCH d USING INDEX deliveries_open (state=?)") ||
			strings.Contains(plan, "SCAN d\n") || strings.Contains(plan, "SCAN e") || strings.Contains(plan, "SCAN threads") {
			t.Errorf("%s\nreads more than the deliveries that are due:\n%s", statement, plan)
		}
	}
}

// plans returns the plans of the recorded statements.
func (c *conversation) plans() map[string]string {
	c.Helper()
	statements, _ := c.recorder.taken()
	db, err := sql.Open("sqlite", c.path)
	c.must(err)
	defer db.Close()
	plans := map[string]string{}
	for _, statement := range statements {
		plan, err := explain(db, strings.NewReplacer(" FOR UPDATE SKIP LOCKED", "", " FOR UPDATE", "").Replace(statement))
		if err != nil {
			c.Errorf("%v: %s", err, statement)
		}
		plans[statement] = plan
	}
	return plans
}

// explain returns a statement's plan, one line for each step.
func explain(db *sql.DB, statement string) (string, error) {
	var args []any
	for i := 1; strings.Contains(statement, fmt.Sprint("$", i)); i++ {
		args = append(args, int64(1))
	}
	rows, err := db.Query("EXPLAIN QUERY PLAN "+statement, args...)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	var plan strings.Builder
	for rows.Next() {
		var id, parent, unused int64
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			return "", err
		}
		plan.WriteString(detail + "\n")
	}
	return plan.String(), rows.Err()
}
