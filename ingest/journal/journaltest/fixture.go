package journaltest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/ingest/event"
	"parley/ingest/journal"
	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/record"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
)

// clock is the clock of a test's journals.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.UnixMilli(1_700_000_000_000).UTC()} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

const (
	workspace = "acme"
	channel   = "C1"
	agent     = "helper"
)

// threadKey is the key of the test's nth thread.
func threadKey(n int) event.ThreadKey { return event.ThreadKey(fmt.Sprintf("slack:acme:C1:%d", n)) }

// failing is a *testing.T or a *rapid.T.
type failing interface {
	Helper()
	Fatalf(format string, args ...any)
}

// fixture is one process that works on a journal, with a clock that only the test
// advances.
type fixture struct {
	failing
	*journal.Journal
	ctx    context.Context
	engine storage.Engine
	clock  *clock
	serial int
	claims map[int64]*threads.Claim
}

// start returns the first process of a test, on an empty database.
func start(t *testing.T, open func(*testing.T) storage.Engine) *fixture {
	t.Helper()
	return process(t, t.Context(), open(t), newClock(), "first", 0)
}

// process returns a process with the given node name and the given duration of leases.
func process(t failing, ctx context.Context, engine storage.Engine, clock *clock, node string, lease time.Duration) *fixture {
	return &fixture{
		failing: t, ctx: ctx, engine: engine, clock: clock, claims: map[int64]*threads.Claim{},
		Journal: journal.New(engine, journal.Options{Node: node, Lease: lease, Now: clock.Now, Remembered: journal.DefaultRemembered}),
	}
}

// successor returns the process that starts after this one has died.
func (f *fixture) successor(node string) *fixture {
	next := process(f.failing, f.ctx, f.engine, f.clock, node, 0)
	next.serial = f.serial
	return next
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatalf("%v", err)
	}
}

// threadID returns the UUID of the thread with a key.
func (f *fixture) threadID(key event.ThreadKey) string {
	f.Helper()
	id, err := f.Threads.ThreadID(f.ctx, key)
	f.must(err)
	return id
}

// same fails the test if got differs from want.
func same[T any](f failing, what string, got, want T) {
	f.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		f.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

// fails fails the test if err is not the wanted error.
func (f *fixture) fails(what string, err, want error) {
	f.Helper()
	if !errors.Is(err, want) {
		f.Fatalf("%s: error %v, want %v", what, err, want)
	}
}

// envelope returns a payload of a kind in a thread, about a message. Every call returns
// another payload.
func (f *fixture) envelope(kind event.Kind, thread event.ThreadKey, messageID string) envelopes.AcceptRequest {
	f.serial++
	return envelopes.AcceptRequest{
		Envelope: event.Envelope{
			Workspace: workspace, Platform: event.Slack, Transport: "http",
			ReceivedAt: f.clock.Now(), Body: fmt.Appendf(nil, "payload %d of %s", f.serial, messageID),
		},
		Keys: event.Keys{
			Kind: kind, Dedupe: fmt.Sprintf("%s:%s:%d", kind, messageID, f.serial), Thread: thread,
			Channel: event.Channel{ID: channel}, MessageID: messageID,
		},
	}
}

// accept accepts a payload.
func (f *fixture) accept(a envelopes.AcceptRequest) envelopes.AcceptResult {
	f.Helper()
	accepted, err := f.Envelopes.Accept(f.ctx, a)
	f.must(err)
	return accepted
}

// claim returns this process's claim of a thread.
func (f *fixture) claim(thread int64) *threads.Claim {
	f.Helper()
	if claim := f.claims[thread]; claim != nil {
		return claim
	}
	claim := &threads.Claim{Thread: thread}
	f.must(f.engine.Write(f.ctx, storage.WriteOptions{}, func(tx storage.Tx) error {
		found, err := tx.Row([]any{&claim.Fence, (*string)(&claim.Key)},
			`UPDATE threads SET owner = 'test', fence = fence + 1 WHERE id = $1 RETURNING fence, key`, thread)
		if err == nil && !found {
			err = storage.ErrNotFound
		}
		return err
	}))
	f.claims[thread] = claim
	return claim
}

// said returns a person's message.
func said(id, content string) *event.Message {
	return &event.Message{
		ExternalID: id, Content: content, Channel: event.Channel{ID: channel},
		Metadata: event.Metadata{
			Source: "slack", SenderID: "slack:U1", SenderDisplayName: "Olivia", SenderType: event.Human, ChannelExternalID: channel,
		},
	}
}

// policy is the Decide of an entry.
type policy func(*event.Message, record.Look) record.Decision

// decided returns a policy with one decision for all messages.
func decided(d record.Decision) policy {
	return func(m *event.Message, _ record.Look) record.Decision {
		made := d // tests run in parallel
		made.Metadata = m.Metadata.Bytes()
		return made
	}
}

var (
	triggers = decided(record.Decision{Trigger: messages.TriggerRun, Reason: event.ReasonMention})
	passive  = decided(record.Decision{Trigger: messages.TriggerPassive, Reason: event.ReasonNoMention})
	noted    = decided(record.Decision{Trigger: messages.TriggerNone, Reason: event.ReasonNotAddressed, Note: true})
	refused  = decided(record.Decision{Trigger: messages.TriggerNone, Reason: event.ReasonUserRefused, Ignore: true})
	// mentions triggers runs by messages with @bot, and stores the others passively.
	mentions policy = func(m *event.Message, look record.Look) record.Decision {
		if strings.Contains(m.Content, "@bot") {
			return triggers(m, look)
		}
		return passive(m, look)
	}
)

// entry returns a normalised event of an envelope.
func entry(envelope int64, e event.Event, decide policy) record.Entry {
	return record.Entry{
		Envelope: envelope, Workspace: workspace, Event: e, Origin: messages.Live, Agent: agent, Decide: decide, Notice: notice,
	}
}

// record records an event under the process's claim.
func (f *fixture) record(thread, envelope int64, e event.Event, decide policy) record.Result {
	f.Helper()
	result, err := f.Recorder.Record(f.ctx, f.claim(thread), entry(envelope, e, decide))
	f.must(err)
	return result
}

// message accepts and records a message.
func (f *fixture) message(thread event.ThreadKey, m *event.Message, decide policy) record.Result {
	f.Helper()
	accepted := f.accept(f.envelope(event.KindMessage, thread, m.ExternalID))
	return f.record(accepted.Thread, accepted.ID, event.Event{Kind: event.KindMessage, Message: m}, decide)
}

// change accepts and records an edit, delete or reaction.
func (f *fixture) change(thread event.ThreadKey, e event.Event, decide policy) record.Result {
	f.Helper()
	accepted := f.accept(f.envelope(e.Kind, thread, e.Targets[0]))
	return f.record(accepted.Thread, accepted.ID, e, decide)
}

// edited returns a message's state after an edit.
func edited(id, content, revision string) event.Event {
	m := said(id, content)
	m.Revision = revision
	return event.Event{Kind: event.KindEdit, Message: m, Targets: []string{id}}
}

// deleted returns the delete of messages.
func deleted(ids ...string) event.Event { return event.Event{Kind: event.KindDelete, Targets: ids} }

// thread returns the row of a thread that has had an envelope.
func (f *fixture) thread(key event.ThreadKey) int64 {
	f.Helper()
	var id int64
	f.must(f.engine.Read(f.ctx, func(tx storage.Tx) error {
		_, err := tx.Row([]any{&id}, `SELECT id FROM threads WHERE key = $1`, string(key))
		return err
	}))
	return id
}

// begin begins or resumes the thread's run, which must be due.
func (f *fixture) begin(thread event.ThreadKey) *runs.Run {
	f.Helper()
	run := f.mayBegin(thread, false)
	if run == nil {
		f.Fatalf("no run is due in %s", thread)
	}
	return run
}

func (f *fixture) mayBegin(thread event.ThreadKey, alone bool) *runs.Run {
	f.Helper()
	run, err := f.Runs.BeginRun(f.ctx, f.claim(f.thread(thread)), agent, false, func(*runs.Run) bool { return alone }, math.MaxInt64)
	f.must(err)
	return run
}

// answer returns a reply with some posts.
func answer(content string, posts ...string) runs.Reply {
	r := runs.Reply{
		Content: content, Stale: "send",
		Metadata: func(id string, _ time.Duration) []byte {
			return fmt.Appendf(nil, `{"message_id":%q}`, id)
		},
	}
	for _, text := range posts {
		r.Posts = append(r.Posts, outbox.Post{Channel: channel, Place: "1", Text: text})
	}
	return r
}

// commit commits a reply and returns the result.
func (f *fixture) commit(run *runs.Run, reply runs.Reply) runs.EndResult {
	f.Helper()
	ended, err := f.Runs.CommitReply(f.ctx, f.claim(run.Thread), run, reply)
	f.must(err)
	return ended
}

// exchange records one question and its answer, with posts that carry it.
func (f *fixture) exchange(thread event.ThreadKey, id, question, reply string, posts ...string) {
	f.Helper()
	f.message(thread, said(id, question), triggers)
	same(f, "result", f.commit(f.begin(thread), answer(reply, posts...)).State, runs.Done)
}

// list returns the thread's messages.
func (f *fixture) list(thread event.ThreadKey) []messages.Listed {
	f.Helper()
	out, err := f.Messages.ThreadMessages(f.ctx, strings.Split(string(thread), ":")[1], f.threadID(thread), messages.Page{Limit: 1000})
	f.must(err)
	return out
}

// lines returns the thread's messages as "seq content", tombstones as "seq -".
func (f *fixture) lines(thread event.ThreadKey) []string {
	f.Helper()
	return each(f.list(thread), func(m messages.Listed) string {
		if !m.DeletedAt.IsZero() {
			return fmt.Sprintf("%d -", m.Seq)
		}
		return fmt.Sprintf("%d %s", m.Seq, m.Content)
	})
}

// contents returns the contents of messages.
func contents(list []messages.Message) []string {
	return each(list, func(m messages.Message) string { return m.Content })
}

// each applies word to each element of list.
func each[T, R any](list []T, word func(T) R) []R {
	out := []R{}
	for _, x := range list {
		out = append(out, word(x))
	}
	return out
}

// body returns the raw bytes that are stored of an envelope.
func (f *fixture) body(envelope int64) (body []byte) {
	f.Helper()
	f.must(f.engine.Read(f.ctx, func(tx storage.Tx) error {
		_, err := tx.Row([]any{&body}, `SELECT body FROM envelopes WHERE id = $1`, envelope)
		return err
	}))
	return body
}

// count returns the number of rows of a table.
func (f *fixture) count(table string) (n int64) {
	f.Helper()
	f.must(f.engine.Read(f.ctx, func(tx storage.Tx) error {
		_, err := tx.Row([]any{&n}, `SELECT count(*) FROM `+table)
		return err
	}))
	return n
}

// The kinds of work of threads, each with the query for the threads that have it at a
// time.
const (
	intake     = `SELECT id FROM threads WHERE intake_at <= $1 ORDER BY id`
	turns      = `SELECT id FROM threads WHERE turn_at <= $1 AND agent = 'helper' ORDER BY id`
	deliveries = `SELECT DISTINCT thread FROM deliveries d WHERE due_at <= $1 AND state IN ('pending', 'sending') AND NOT EXISTS (
		SELECT 1 FROM deliveries e WHERE e.thread = d.thread AND e.id < d.id AND e.kind <> 'unsign' AND e.state IN ('pending', 'sending')) ORDER BY thread`
)

// due returns the threads that have work of a kind, in ascending order.
func (f *fixture) due(kind string) (threads []int64) {
	f.Helper()
	f.must(f.engine.ReadOne(f.ctx, func(tx storage.Tx) error {
		threads = nil
		return tx.Rows(func(scan func(...any) error) error {
			var id int64
			err := scan(&id)
			threads = append(threads, id)
			return err
		}, kind, f.clock.Now().UnixMilli())
	}))
	return threads
}

// next returns the thread's due envelopes.
func (f *fixture) next(thread int64) []envelopes.Pending {
	f.Helper()
	pending, err := f.Envelopes.NextEnvelopes(f.ctx, thread, 100)
	f.must(err)
	return pending
}

// deliver sends the thread's next delivery, which gets an id of the platform.
func (f *fixture) deliver(thread event.ThreadKey, platformID string) *outbox.Delivery {
	f.Helper()
	d := f.delivery(thread)
	f.sending(d)
	_, err := f.Outbox.Sent(f.ctx, d, platformID)
	f.must(err)
	return d
}

// delivery returns the thread's next delivery, which must exist.
func (f *fixture) delivery(thread event.ThreadKey) *outbox.Delivery {
	f.Helper()
	d, err := f.Outbox.NextDelivery(f.ctx, f.thread(thread))
	f.must(err)
	if d == nil {
		f.Fatalf("no delivery in %s", thread)
	}
	return d
}

// sending marks a delivery as sending, which its channel's pace must allow.
func (f *fixture) sending(d *outbox.Delivery) {
	f.Helper()
	slot := f.slot(d, 0)
	if slot.SendBy.IsZero() {
		f.Fatalf("delivery %d must wait until %v", d.ID, slot.Wait)
	}
}

// slot requests a delivery's place in a pace.
func (f *fixture) slot(d *outbox.Delivery, every time.Duration) outbox.Slot {
	f.Helper()
	slot, err := f.Outbox.BeginSend(f.ctx, f.claim(d.Thread), d, outbox.Send{Timeout: 10 * time.Second, Every: every})
	f.must(err)
	if !slot.SendBy.IsZero() {
		d.Attempts++
	}
	return slot
}

// exec changes rows without the journal.
func (f *fixture) exec(query string, args ...any) {
	f.Helper()
	f.must(f.engine.Write(f.ctx, storage.WriteOptions{}, func(tx storage.Tx) error {
		_, err := tx.Exec(query, args...)
		return err
	}))
}

// thumbsUp returns a reaction to a message.
func thumbsUp(target string) event.Event {
	return event.Event{Kind: event.KindReaction, Targets: []string{target}, Reaction: &event.Reaction{Emoji: "+1", SenderID: "slack:U2"}}
}

// fail ends a run without an answer, with a notice to the thread.
func (f *fixture) fail(run *runs.Run, notice string) {
	f.Helper()
	told := outbox.Notice{Text: notice, Metadata: []byte(`{"k":1}`), Posts: []outbox.Post{{Channel: channel, Place: "1", Text: notice}}}
	f.leaves(run, runs.Unanswered{State: runs.Failed, Cause: "the agent is gone", Notice: told})
}

// leaves ends an attempt of a run without an answer.
func (f *fixture) leaves(run *runs.Run, u runs.Unanswered) {
	f.Helper()
	_, err := f.Runs.EndAttempt(f.ctx, f.claim(run.Thread), run, u)
	f.must(err)
}
