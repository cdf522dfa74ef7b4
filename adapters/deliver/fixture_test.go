package deliver_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/adapters"
	"parley/adapters/deliver"
	"parley/ingest/event"
	"parley/ingest/journal"
	"parley/ingest/journal/sqlite"
)

// fault is what one call of the platform does instead of posting.
type fault struct {
	failure adapters.SendFailure
	after   time.Duration // RateLimited: the time that is told
	effect  time.Duration // Unclear: the post stands there so long after; negative: never
	takes   time.Duration // the answer comes so late
	panics  bool
}

var (
	lost       = fault{failure: adapters.Unclear, effect: -1}
	arrived    = fault{failure: adapters.Unclear}
	arriveLate = fault{failure: adapters.Unclear, effect: 12 * time.Second}
	notSent    = fault{failure: adapters.NotSent}
	permanent  = fault{failure: adapters.Permanent}
)

// chat is a small platform. It posts each text once a call, unless a fault of
// that text is next.
type chat struct {
	mu       sync.Mutex
	faults   map[string][]fault
	findings []error // of the next questions
	posts    []posted
	calls    []call
	asked    []time.Time
	effects  sync.WaitGroup
}

type posted struct{ key, channel, text string }

// call is one call of Send, timed from the test's begin.
type call struct {
	Text      string
	At, Until time.Duration
}

// epoch is when a bubble's clock begins.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func (c *chat) Format(text string, _ []string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}

func (c *chat) Address(thread event.ThreadKey) (adapters.Address, error) {
	if thread == "" {
		return adapters.Address{}, errors.New("no thread")
	}
	return adapters.Address{Channel: "C1", Root: string(thread)}, nil
}

func (c *chat) Send(ctx context.Context, post adapters.Post) (string, error) {
	if ctx.Err() != nil {
		panic("a call was begun after its time")
	}
	until, _ := ctx.Deadline()
	f, ok := c.begin(post, until)
	pass(f.takes)
	switch {
	case !ok:
		return c.post(post), nil
	case f.panics:
		panic("a bug in the adapter")
	case f.failure == adapters.Unclear && f.effect == 0:
		c.post(post)
	case f.failure == adapters.Unclear && f.effect > 0:
		c.effects.Go(func() {
			pass(f.effect)
			c.post(post)
		})
	}
	return "", &adapters.SendError{Failure: f.failure, RetryAfter: f.after, Err: errors.New("the platform's words")}
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

// texts are what stands on the platform, in order.
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

// honest is a chat that can say whether a post of ours is there.
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

var (
	_ adapters.Sender = (*chat)(nil)
	_ adapters.Finder = honest{}
)

// office is an outbox with its store, in a bubble.
type office struct {
	*testing.T
	chat     *chat
	journal  *journal.Journal
	desk     *journal.Desk
	path     string
	platform deliver.Platform
	gone     bool // the workspace is not configured

	mu     sync.Mutex
	states []journal.DeliveryState
	serial int
}

// inOffice runs a test in a bubble, with an outbox that does not send yet.
func inOffice(t *testing.T, test func(o *office)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := &chat{faults: map[string][]fault{}}
		o := &office{
			T: t, chat: c, path: filepath.Join(t.TempDir(), "journal.db"),
			platform: deliver.Platform{
				Sender: honest{c}, Limits: adapters.Limits{Timeout: 10 * time.Second},
				Unknown: func(string) string { return "resend" },
			},
		}
		o.open()
		test(o)
		c.effects.Wait()
	})
}

func (o *office) open() {
	o.Helper()
	engine, err := sqlite.Open(o.Context(), o.path)
	if err != nil {
		o.Fatal(err)
	}
	j := journal.New(engine, journal.Options{Node: fmt.Sprint("node", o.serial)})
	o.journal, o.desk = j, journal.NewDesk(j, slog.New(slog.DiscardHandler))
	o.Cleanup(func() { _ = j.Close() })
}

// send works on the outbox until stop is called or the test ends. abandon ends
// the calls under way, too.
func (o *office) send() (stop func(), abandon func()) {
	claim, stopClaiming := context.WithCancel(o.Context())
	work, stopWorking := context.WithCancel(o.Context())
	box := deliver.New(deliver.Parts{
		Journal: o.journal, Desk: o.desk, Observer: o, Log: slog.New(slog.DiscardHandler), Now: time.Now,
		Platform: func(string) (deliver.Platform, bool) {
			o.mu.Lock()
			defer o.mu.Unlock()
			return o.platform, !o.gone
		},
	})
	var working sync.WaitGroup
	working.Go(func() { _ = box.Run(claim, work) })
	stop = sync.OnceFunc(func() { stopClaiming(); working.Wait(); stopWorking() })
	o.Cleanup(stop)
	return stop, stopWorking
}

func (o *office) setGone(gone bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.gone = gone
}

// Delivery implements deliver.Observer.
func (o *office) Delivery(_ string, state journal.DeliveryState) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.states = append(o.states, state)
}

func (o *office) must(err error) {
	o.Helper()
	if err != nil {
		o.Fatal(err)
	}
}

// reply commits a reply with these texts in a thread of channel C1.
func (o *office) reply(thread string, texts ...string) { o.Helper(); o.replyIn("C1", thread, texts...) }

func (o *office) replyIn(channel, thread string, texts ...string) {
	o.Helper()
	ctx := o.Context()
	o.serial++
	id := fmt.Sprint("question", o.serial)
	custody, err := o.journal.Accept(ctx, journal.Acceptance{
		Envelope: event.Envelope{Workspace: "acme", Platform: event.Slack},
		Keys:     event.Keys{Kind: event.KindMessage, Dedupe: id, Thread: event.ThreadKey(thread), Channel: event.Channel{ID: channel}},
	})
	o.must(err)
	lease, err := o.journal.Claim(ctx, custody.Thread, journal.Intake)
	o.must(err)
	_, err = o.journal.Record(ctx, lease, journal.Entry{
		Envelope: custody.ID, Workspace: "acme", Agent: "helper",
		Event: event.Event{Kind: event.KindMessage, Message: &event.Message{ExternalID: id, Content: "?"}},
		Decide: func(*event.Message, journal.Look) (journal.Decision, error) {
			return journal.Decision{Trigger: journal.TriggerRun, Metadata: []byte("{}")}, nil
		},
	})
	o.must(err)
	run, err := o.journal.BeginRun(ctx, lease, "helper", func(string, string) bool { return false })
	o.must(err)
	reply := journal.Reply{Metadata: func(string, time.Duration) ([]byte, error) { return []byte("{}"), nil }}
	for _, text := range texts {
		reply.Posts = append(reply.Posts, journal.Post{Channel: channel, Text: text})
	}
	_, err = o.journal.CommitReply(ctx, lease, run, reply)
	o.must(err)
	o.desk.Lost(lease) // this claim is nobody's any more
	o.desk.Wake(journal.Deliveries, "", custody.Thread)
}

// settled are the states that deliveries have come to.
func (o *office) settled() []journal.DeliveryState {
	synctest.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.states)
}

// pass lets the bubble's clock go on by d: nothing waits in real time.
func pass(d time.Duration) { <-time.After(d) }
