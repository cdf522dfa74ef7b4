package journaltest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/ingest/event"
	"parley/ingest/journal"
)

// clock is the time as the journals of a test see it.
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

// failing is what the fixture needs of a test: a *testing.T or a property's.
type failing interface {
	Helper()
	Fatalf(format string, args ...any)
}

// fixture is one process that works on a journal, with a clock that only the
// test moves.
type fixture struct {
	failing
	*journal.Journal
	ctx    context.Context
	engine journal.Engine
	clock  *clock
	serial int
	leases map[int64]*journal.Lease
}

// start returns the first process of a test, on an empty database.
func start(t *testing.T, open func(*testing.T) journal.Engine) *fixture {
	t.Helper()
	return process(t, t.Context(), open(t), newClock(), "first", 0)
}

// process returns a process of the given node name, whose leases last so long.
func process(t failing, ctx context.Context, engine journal.Engine, clock *clock, node string, lease time.Duration) *fixture {
	return &fixture{
		failing: t, ctx: ctx, engine: engine, clock: clock, leases: map[int64]*journal.Lease{},
		Journal: journal.New(engine, journal.Options{Node: node, Lease: lease, Now: clock.Now}),
	}
}

// successor is the process that is started after this one has died.
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

// same fails the test where got is not want.
func same[T any](f failing, what string, got, want T) {
	f.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		f.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

// fails fails the test where err is not the wanted one.
func (f *fixture) fails(what string, err, want error) {
	f.Helper()
	if !errors.Is(err, want) {
		f.Fatalf("%s: error %v, want %v", what, err, want)
	}
}

// envelope is a payload of kind in a thread, about a subject. Every call makes
// another payload.
func (f *fixture) envelope(kind event.Kind, thread event.ThreadKey, subject string) journal.Acceptance {
	f.serial++
	return journal.Acceptance{
		Envelope: event.Envelope{
			Workspace: workspace, Platform: event.Slack, Transport: "http",
			ReceivedAt: f.clock.Now(), Body: fmt.Appendf(nil, "payload %d of %s", f.serial, subject),
		},
		Keys: event.Keys{
			Kind: kind, Dedupe: fmt.Sprintf("%s:%s:%d", kind, subject, f.serial), Thread: thread,
			Channel: event.Channel{ID: channel}, Subject: subject,
		},
	}
}

// accept takes custody of a payload.
func (f *fixture) accept(a journal.Acceptance) journal.Custody {
	f.Helper()
	custody, err := f.Accept(f.ctx, a)
	f.must(err)
	return custody
}

// claim returns this process's lease of a thread.
func (f *fixture) claim(thread int64) *journal.Lease {
	f.Helper()
	if lease := f.leases[thread]; lease != nil {
		return lease
	}
	lease, err := f.Claim(f.ctx, thread, journal.Intake)
	f.must(err)
	if lease == nil {
		f.Fatalf("thread %d can't be claimed", thread)
	}
	f.leases[thread] = lease
	return lease
}

// said is a person's message.
func said(id, content string) *event.Message {
	return &event.Message{
		ExternalID: id, Content: content, Channel: event.Channel{ID: channel},
		Metadata: event.Metadata{
			Source: "slack", SenderID: "slack:U1", SenderDisplayName: "Olivia", SenderType: event.Human, ChannelExternalID: channel,
		},
	}
}

// policy is what a test decides of every message.
type policy func(*event.Message, journal.Look) (journal.Decision, error)

// decided is a policy that decides the same of every message.
func decided(d journal.Decision) policy {
	return func(m *event.Message, _ journal.Look) (journal.Decision, error) {
		made := d // tests run side by side
		made.Metadata = m.Metadata.Bytes()
		return made, nil
	}
}

var (
	runs    = decided(journal.Decision{Trigger: journal.TriggerRun, Reason: event.ReasonMention})
	passive = decided(journal.Decision{Trigger: journal.TriggerPassive, Reason: event.ReasonNoMention})
	noted   = decided(journal.Decision{Trigger: journal.TriggerNone, Reason: event.ReasonNotAddressed, Note: true})
	refused = decided(journal.Decision{Trigger: journal.TriggerNone, Reason: event.ReasonUserRefused, Ignore: true})
	// mentions runs what names @bot, and keeps the rest passively.
	mentions policy = func(m *event.Message, look journal.Look) (journal.Decision, error) {
		if strings.Contains(m.Content, "@bot") {
			return runs(m, look)
		}
		return passive(m, look)
	}
)

// entry is a normalised event of an envelope.
func entry(envelope int64, e event.Event, decide policy) journal.Entry {
	return journal.Entry{
		Envelope: envelope, Workspace: workspace, Event: e, Origin: journal.Live, Agent: agent, Decide: decide,
	}
}

// record records an event under the process's lease.
func (f *fixture) record(thread, envelope int64, e event.Event, decide policy) journal.Outcome {
	f.Helper()
	outcome, err := f.Record(f.ctx, f.claim(thread), entry(envelope, e, decide))
	f.must(err)
	return outcome
}

// message accepts and records a message.
func (f *fixture) message(thread event.ThreadKey, m *event.Message, decide policy) journal.Outcome {
	f.Helper()
	custody := f.accept(f.envelope(event.KindMessage, thread, m.ExternalID))
	return f.record(custody.Thread, custody.ID, event.Event{Kind: event.KindMessage, Message: m}, decide)
}

// change accepts and records an edit, delete or reaction.
func (f *fixture) change(thread event.ThreadKey, e event.Event, decide policy) journal.Outcome {
	f.Helper()
	custody := f.accept(f.envelope(e.Kind, thread, e.Targets[0]))
	return f.record(custody.Thread, custody.ID, e, decide)
}

// edited is a message's state after an edit.
func edited(id, content, revision string) event.Event {
	m := said(id, content)
	m.Revision = revision
	return event.Event{Kind: event.KindEdit, Message: m, Targets: []string{id}}
}

// deleted is the end of messages.
func deleted(ids ...string) event.Event { return event.Event{Kind: event.KindDelete, Targets: ids} }

// thread is the row of a thread that has had an envelope.
func (f *fixture) thread(key event.ThreadKey) int64 {
	f.Helper()
	var id int64
	f.must(f.engine.Read(f.ctx, func(tx journal.Tx) error {
		_, err := tx.Row([]any{&id}, `SELECT id FROM threads WHERE key = ?`, string(key))
		return err
	}))
	return id
}

// begin begins or takes up the thread's run, which must be due.
func (f *fixture) begin(thread event.ThreadKey) *journal.Run {
	f.Helper()
	run := f.mayBegin(thread, false)
	if run == nil {
		f.Fatalf("no run is due in %s", thread)
	}
	return run
}

func (f *fixture) mayBegin(thread event.ThreadKey, alone bool) *journal.Run {
	f.Helper()
	run, err := f.BeginRun(f.ctx, f.claim(f.thread(thread)), agent, func(string, string) bool { return alone })
	f.must(err)
	return run
}

// answer is a reply of some posts.
func answer(content string, posts ...string) journal.Reply {
	r := journal.Reply{
		Content: content, Stale: "send",
		Metadata: func(id string, _ time.Duration) ([]byte, error) {
			return fmt.Appendf(nil, `{"message_id":%q}`, id), nil
		},
	}
	for _, text := range posts {
		r.Posts = append(r.Posts, journal.Post{Channel: channel, Root: "1", Text: text})
	}
	return r
}

// commit commits a reply and returns what became of it.
func (f *fixture) commit(run *journal.Run, reply journal.Reply) journal.Ended {
	f.Helper()
	ended, err := f.CommitReply(f.ctx, f.claim(run.Thread), run, reply)
	f.must(err)
	return ended
}

// exchange is one question and its answer, with posts that carry it.
func (f *fixture) exchange(thread event.ThreadKey, id, question, reply string, posts ...string) {
	f.Helper()
	f.message(thread, said(id, question), runs)
	same(f, "outcome", f.commit(f.begin(thread), answer(reply, posts...)).Outcome, journal.Committed)
}

// list returns the thread's messages as everybody sees them.
func (f *fixture) list(thread event.ThreadKey) []journal.Listed {
	f.Helper()
	out, err := f.Messages(f.ctx, thread, 0, 1000)
	f.must(err)
	return out
}

// lines are the thread's messages as "seq content", tombstones as "seq -".
func (f *fixture) lines(thread event.ThreadKey) []string {
	f.Helper()
	return each(f.list(thread), func(m journal.Listed) string {
		if !m.DeletedAt.IsZero() {
			return fmt.Sprintf("%d -", m.Seq)
		}
		return fmt.Sprintf("%d %s", m.Seq, m.Content)
	})
}

// contents are what a run answers.
func contents(messages []journal.Message) []string {
	return each(messages, func(m journal.Message) string { return m.Content })
}

// each is each of list in words.
func each[T, R any](list []T, word func(T) R) []R {
	out := []R{}
	for _, x := range list {
		out = append(out, word(x))
	}
	return out
}

// body returns the raw bytes that an envelope still has.
func (f *fixture) body(envelope int64) (body []byte) {
	f.Helper()
	f.must(f.engine.Read(f.ctx, func(tx journal.Tx) error {
		_, err := tx.Row([]any{&body}, `SELECT body FROM envelopes WHERE id = ?`, envelope)
		return err
	}))
	return body
}

// count returns the number of rows of a table.
func (f *fixture) count(table string) (n int64) {
	f.Helper()
	f.must(f.engine.Read(f.ctx, func(tx journal.Tx) error {
		_, err := tx.Row([]any{&n}, `SELECT count(*) FROM `+table)
		return err
	}))
	return n
}

// due returns the threads that have work of a kind, in ascending order.
func (f *fixture) due(work journal.Work) []int64 {
	f.Helper()
	threads, err := f.Due(f.ctx, work, agent, 100)
	f.must(err)
	slices.Sort(threads)
	return threads
}

// next returns the thread's envelopes that are due.
func (f *fixture) next(thread int64) []journal.Pending {
	f.Helper()
	pending, err := f.NextEnvelopes(f.ctx, thread, 100)
	f.must(err)
	return pending
}

// deliver sends the thread's next delivery, which the platform knows by an id.
func (f *fixture) deliver(thread event.ThreadKey, platformID string) *journal.Delivery {
	f.Helper()
	d := f.delivery(thread)
	f.sending(d)
	_, err := f.Sent(f.ctx, f.claim(d.Thread), d, platformID)
	f.must(err)
	return d
}

// delivery is the thread's next one, which must be there.
func (f *fixture) delivery(thread event.ThreadKey) *journal.Delivery {
	f.Helper()
	d, err := f.NextDelivery(f.ctx, f.thread(thread))
	f.must(err)
	if d == nil {
		f.Fatalf("nothing is to be delivered in %s", thread)
	}
	return d
}

// sending begins to send a delivery, which its channel's pace must allow.
func (f *fixture) sending(d *journal.Delivery) {
	f.Helper()
	slot := f.slot(d, 0)
	if slot.SendBy.IsZero() {
		f.Fatalf("delivery %d must wait until %v", d.ID, slot.Wait)
	}
}

// slot asks for a delivery's place in a pace.
func (f *fixture) slot(d *journal.Delivery, every time.Duration) journal.Slot {
	f.Helper()
	slot, err := f.BeginSend(f.ctx, f.claim(d.Thread), d, journal.Send{Timeout: 10 * time.Second, Every: every})
	f.must(err)
	return slot
}

// exec changes rows behind the journal's back.
func (f *fixture) exec(query string, args ...any) {
	f.Helper()
	f.must(f.engine.Write(f.ctx, func(tx journal.Tx) error {
		_, err := tx.Exec(query, args...)
		return err
	}))
}

// thumbsUp is a reaction to a message.
func thumbsUp(target string) event.Event {
	return event.Event{Kind: event.KindReaction, Targets: []string{target}, Reaction: &event.Reaction{Emoji: "+1", SenderID: "slack:U2"}}
}

// fail ends a run without an answer, with a notice to the thread.
func (f *fixture) fail(run *journal.Run, notice string) {
	f.Helper()
	posts := []journal.Post{{Channel: channel, Root: "1", Text: notice}}
	f.must(f.FailRun(f.ctx, f.claim(run.Thread), run, errors.New("the agent is gone"), posts, nil))
}
