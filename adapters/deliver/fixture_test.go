package deliver_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/adapters"
	"parley/adapters/deliver"
	"parley/ingest/event"
	"parley/ingest/journal"
	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/journaltest"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/record"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/sqlite"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
	"parley/ingest/trace"
	"parley/ingest/work"
)

// fault is the failure of one call of the platform.
type fault struct {
	failure adapters.SendFailure
	after   time.Duration // RateLimited: the wait
	scope   adapters.Scope
	effect  time.Duration // Unclear: the delay of the effect; negative: no effect
	takes   time.Duration // the duration of the call
	panics  bool
}

var (
	lost       = fault{failure: adapters.Unclear, effect: -1}
	arrived    = fault{failure: adapters.Unclear}
	arriveLate = fault{failure: adapters.Unclear, effect: 12 * time.Second}
	notSent    = fault{failure: adapters.NotSent}
	permanent  = fault{failure: adapters.Permanent}
)

// chat is a fake platform. Each call posts its text, unless a fault of that text is next.
type chat struct {
	mu       sync.Mutex
	faults   map[string][]fault
	findings []error // errors of the next queries
	posts    []posted
	calls    []call
	asked    []time.Time
	effects  sync.WaitGroup
	posting  func() // called during each call; nil for none

	formatted string // the last text that was formatted
}

type posted struct{ key, channel, text string }

// call is one call of Send, timed from the begin of the test.
type call struct {
	Text      string
	At, Until time.Duration
}

// epoch is the initial time of a bubble's clock.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func (c *chat) Format(text string, _ []string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.formatted = text
	if text == "" {
		return nil
	}
	return []string{text}
}

func (c *chat) Address(thread event.ThreadKey, _ string) (adapters.Address, error) {
	if thread == "" {
		return adapters.Address{}, errors.New("no thread")
	}
	return adapters.Address{Channel: "C1", Place: string(thread)}, nil
}

func (c *chat) Send(ctx context.Context, post adapters.Post) (string, error) {
	if ctx.Err() != nil {
		panic("a call began after its deadline")
	}
	until, _ := ctx.Deadline()
	f, ok := c.begin(post, until)
	advance(f.takes)
	if c.posting != nil {
		c.posting()
	}
	switch {
	case !ok:
		return c.post(post), nil
	case f.panics:
		panic("a bug in the adapter")
	case f.failure == adapters.Unclear && f.effect == 0:
		c.post(post)
	case f.failure == adapters.Unclear && f.effect > 0:
		c.effects.Go(func() {
			advance(f.effect)
			c.post(post)
		})
	}
	return "", &adapters.SendError{Failure: f.failure, RetryAfter: f.after, Scope: f.scope, Err: errors.New("the platform's error")}
}

func (c *chat) begin(post adapters.Post, until time.Time) (f fault, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, call{post.Text, time.Since(epoch), until.Sub(epoch)})
	if next := c.faults[post.Text]; len(next) > 0 {
		c.faults[post.Text] = next[1:]
		return next[0], true
	}
	return fault{}, false
}

func (c *chat) post(p adapters.Post) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.posts = append(c.posts, posted{p.Key, p.To.Channel, p.Text})
	return fmt.Sprintf("%s/%d", p.To.Channel, len(c.posts))
}

// texts returns the posts of the platform, in order.
func (c *chat) texts() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for _, p := range c.posts {
		out = append(out, p.text)
	}
	return out
}

func (c *chat) times(text string) []time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []time.Duration
	for _, call := range c.calls {
		if call.Text == text {
			out = append(out, call.At)
		}
	}
	return out
}

// honest is a chat that finds our posts.
type honest struct{ *chat }

func (h honest) Find(_ context.Context, post adapters.Post) (string, bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked = append(h.asked, time.Now())
	if len(h.findings) > 0 {
		err := h.findings[0]
		h.findings = h.findings[1:]
		if err != nil {
			return "", false, err
		}
	}
	i := slices.IndexFunc(h.posts, func(p posted) bool { return p.key == post.Key })
	return fmt.Sprintf("%s/%d", post.To.Channel, i+1), i >= 0, nil
}

// forgetful is a chat that no longer knows the keys of our posts, and lists those with a text.
type forgetful struct{ *chat }

func (forgetful) Find(context.Context, adapters.Post) (string, bool, error) { return "", false, nil }

func (f forgetful) List(_ context.Context, post adapters.Post) (ids []string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, p := range f.posts {
		if p.text == post.Text {
			ids = append(ids, fmt.Sprintf("%s/%d", post.To.Channel, i+1))
		}
	}
	return ids, nil
}

func (forgetful) Settles(adapters.Post) time.Duration { return 0 }

var (
	_ adapters.Sender = (*chat)(nil)
	_ adapters.Finder = honest{}
	_ adapters.Finder = forgetful{}
	_ adapters.Lister = forgetful{}
)

// engine is a store that refuses writes while it is down.
type engine struct {
	storage.Engine
	down atomic.Bool
}

func (e *engine) Write(ctx context.Context, options storage.WriteOptions, fn func(tx storage.Tx) error) error {
	if e.down.Load() {
		return storage.ErrUnavailable
	}
	return e.Engine.Write(ctx, options, fn)
}

// fixture is an outbox with its store, in a bubble.
type fixture struct {
	*testing.T
	chat      *chat
	engine    *engine
	journal   *journal.Journal
	scheduler *work.Scheduler
	close     func() // ends the process
	path      string
	platform  deliver.Platform
	workspace string                      // of new replies
	others    map[string]deliver.Platform // of the workspaces besides acme
	gone      bool                        // the workspace is not configured
	log       slog.Handler                // nil: nothing is logged

	mu     sync.Mutex
	states []outbox.State
	serial int
}

// withOutbox runs a test in a bubble, with an outbox that does not send yet.
func withOutbox(t *testing.T, test func(o *fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := &chat{faults: map[string][]fault{}}
		o := &fixture{
			T: t, chat: c, workspace: "acme", path: filepath.Join(journaltest.Dir(t), "journal.db"),
			platform: deliver.Platform{
				Sender: honest{c}, Limits: adapters.Limits{Timeout: 10 * time.Second},
				Unknown: func(*outbox.Delivery) string { return "resend" },
			},
		}
		o.open()
		test(o)
		c.effects.Wait()
	})
}

// open starts a process on the fixture's store.
func (o *fixture) open() {
	o.Helper()
	store, err := sqlite.Open(o.Context(), o.path, sqlite.Options{})
	o.must(err)
	engine := &engine{Engine: store}
	node := fmt.Sprint("node", o.serial)
	o.engine, o.journal = engine, journal.New(engine, journal.Options{Node: node})
	scheduler := work.New(engine, work.Options{Node: node, Log: slog.New(slog.DiscardHandler)})
	o.scheduler = scheduler
	ctx, cancel := context.WithCancel(o.Context())
	var running sync.WaitGroup
	o.must(scheduler.AdjustClock(ctx))
	running.Go(func() { _ = scheduler.Run(ctx) })
	o.close = sync.OnceFunc(func() {
		cancel()
		running.Wait()
		_ = engine.Close()
	})
	o.Cleanup(o.close)
}

// box returns the outbox of a process.
func (o *fixture) box(j *journal.Journal, scheduler *work.Scheduler) *deliver.Outbox {
	return deliver.New(deliver.Parts{
		Deliveries: j.Outbox, Records: j.Recorder, Runs: j.Runs, Threads: j.Threads, Work: scheduler, Observer: o, Log: slog.New(cmp.Or(o.log, slog.DiscardHandler)), Now: time.Now,
		Platform: func(workspace string) (deliver.Platform, bool) {
			o.mu.Lock()
			defer o.mu.Unlock()
			if o.gone {
				return deliver.Platform{}, false
			}
			if other, ok := o.others[workspace]; ok {
				return other, true
			}
			return o.platform, true
		},
	})
}

// send runs the outbox until stop is called or the test ends. abandon also ends the calls
// in progress.
func (o *fixture) send() (stop func(), abandon func()) {
	claiming, stopClaiming := context.WithCancel(o.Context())
	calling, stopCalling := context.WithCancel(o.Context())
	box := o.box(o.journal, o.scheduler)
	var working sync.WaitGroup
	working.Go(func() { _ = box.Run(claiming, calling) })
	stop = sync.OnceFunc(func() { stopClaiming(); working.Wait(); stopCalling() })
	o.Cleanup(stop)
	return stop, stopCalling
}

func (o *fixture) setGone(gone bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.gone = gone
}

// Answered implements deliver.Observer.
func (o *fixture) Answered(string, time.Time) {}

// Sending implements deliver.Observer.
func (o *fixture) Sending(ctx context.Context, d *outbox.Delivery) context.Context {
	return trace.With(ctx, trace.Place{Trace: [16]byte{1}}.At(d.Key))
}

// Delivery implements deliver.Observer.
func (o *fixture) Delivery(_ *outbox.Delivery, state outbox.State) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.states = append(o.states, state)
}

func (o *fixture) must(err error) {
	o.Helper()
	if err != nil {
		o.Fatal(err)
	}
}

// reply commits a reply with these texts in a thread of channel C1.
func (o *fixture) reply(thread string, texts ...string) {
	o.Helper()
	o.replyIn("C1", thread, texts...)
}

func (o *fixture) replyIn(channel, thread string, texts ...string) {
	o.Helper()
	claim := o.accept(o.journal, channel, thread, true)
	_, err := o.answer(o.journal, claim, channel, nil, texts...)
	o.must(err)
	o.scheduler.Wake(work.Deliveries, "", claim.Thread)
}

// accept accepts a question, and claims its thread if claims is set.
func (o *fixture) accept(j *journal.Journal, channel, thread string, claims bool) *threads.Claim {
	o.Helper()
	o.serial++
	accepted, err := j.Envelopes.Accept(o.Context(), envelopes.AcceptRequest{
		Envelope: event.Envelope{Workspace: o.workspace, Platform: event.Slack},
		Keys: event.Keys{Kind: event.KindMessage, Dedupe: fmt.Sprint("question", o.serial), Thread: event.ThreadKey(thread),
			Channel: event.Channel{ID: channel}},
		Claim: claims,
	})
	o.must(err)
	return &threads.Claim{Thread: accepted.Thread, Fence: accepted.Fence, Key: event.ThreadKey(thread), Workspace: o.workspace}
}

// answer records the first pending question of a thread and commits a reply to it.
func (o *fixture) answer(j *journal.Journal, claim *threads.Claim, channel string, send *outbox.Send, texts ...string) (runs.EndResult, error) {
	ctx := o.Context()
	pending, err := j.Envelopes.NextEnvelopes(ctx, claim.Thread, 1)
	if err != nil || len(pending) == 0 {
		return runs.EndResult{}, errors.Join(err, errors.New("no question"))
	}
	if _, err := j.Recorder.Record(ctx, claim, record.Entry{
		Envelope: pending[0].ID, Workspace: o.workspace, Agent: "helper",
		Event: event.Event{Kind: event.KindMessage, Message: &event.Message{ExternalID: fmt.Sprint(pending[0].ID), Content: "?"}},
		Decide: func(*event.Message, record.Look) record.Decision {
			return record.Decision{Trigger: messages.TriggerRun, Metadata: []byte("{}")}
		},
	}); err != nil {
		return runs.EndResult{}, err
	}
	run, err := j.Runs.BeginRun(ctx, claim, "helper", false, func(*runs.Run) bool { return false }, math.MaxInt64)
	if err != nil {
		return runs.EndResult{}, err
	}
	reply := runs.Reply{Send: send, Metadata: func(string, time.Duration) []byte { return []byte("{}") }}
	for _, text := range texts {
		reply.Posts = append(reply.Posts, outbox.Post{Channel: channel, Text: text})
	}
	return j.Runs.CommitReply(ctx, claim, run, reply)
}

// settled returns the final states of deliveries.
func (o *fixture) settled() []outbox.State {
	synctest.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.states)
}

// advance moves the bubble's clock on by d. A timer that has expired already would do, but with
// the race detector two of them at the same moment crash Go 1.26.
func advance(d time.Duration) {
	if d > 0 {
		<-time.After(d)
	}
}
