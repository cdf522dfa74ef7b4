package live_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/adapters"
	"parley/adapters/slack"
	"parley/adapters/slack/internal/testapp"
	"parley/adapters/slack/live"
	"parley/adapters/slack/slacktest"
	"parley/config/secret"
	"parley/ingest/event"
)

// runningAdapter is an adapter in Socket Mode that runs against a fake Slack. Each
// test runs in a bubble of testing/synctest. The bubble fails if the test leaves a
// goroutine.
type runningAdapter struct {
	*testapp.Recorder
	t       *testing.T
	ctx     context.Context // bounds every wait
	server  *testapp.Memory
	adapter *slack.Adapter
	stop    context.CancelFunc
	ended   chan error // of Run
}

// runAdapter starts a fake Slack, and runs an adapter against it until the test ends.
func runAdapter(t *testing.T, options slacktest.Options, sockets int, times live.Times, inbox adapters.Inbox) *runningAdapter {
	t.Helper()
	return runAdapterOn(t, testapp.StartMemory(t, options), sockets, times, inbox)
}

// runAdapterOn runs an adapter against the server until the test ends.
func runAdapterOn(t *testing.T, server *testapp.Memory, sockets int, times live.Times, inbox adapters.Inbox) *runningAdapter {
	t.Helper()
	c := testapp.Config(server.URL())
	c.Mode, c.AppToken, c.Sockets = slack.ModeSocket, secret.New(slacktest.AppToken), sockets
	adapter := slack.New("acme", c)
	adapter.Client.Now = func() time.Time { return testapp.Noon }
	testapp.SetTimes(adapter, times)
	adapter.Client.Transport.DialContext = server.Listener.Dial
	p := &runningAdapter{t: t, server: server, adapter: adapter, ended: make(chan error, 1), Recorder: testapp.NewRecorder()}
	var cancel context.CancelFunc
	p.ctx, cancel = context.WithTimeout(t.Context(), testapp.WaitLimit)
	t.Cleanup(cancel)
	running, stop := context.WithCancel(p.ctx)
	finished := make(chan struct{})
	p.stop = func() {
		stop()
		<-finished
	}
	go func() {
		defer close(finished)
		p.ended <- adapter.Run(running, inbox, p.Link())
	}()
	t.Cleanup(p.stop)
	return p
}

// up waits until the adapter reports that events can arrive.
func (p *runningAdapter) up() event.Self {
	p.t.Helper()
	select {
	case self := <-p.Ups:
		return self
	case err := <-p.ended:
		p.t.Fatalf("Run ended with %v\n%s", err, p.Log())
	case <-p.ctx.Done():
		p.t.Fatalf("not up\n%s", p.Log())
	}
	return event.Self{}
}

// end waits until Run returns.
func (p *runningAdapter) end() error {
	p.t.Helper()
	select {
	case err := <-p.ended:
		return err
	case <-p.ctx.Done():
		p.t.Fatalf("Run does not return\n%s", p.Log())
	}
	return nil
}

// sockets waits until exactly n sockets are open, and until the fake has opened exactly
// ever sockets in total.
func (p *runningAdapter) sockets(n, ever int) {
	p.t.Helper()
	if err := p.server.AwaitSockets(p.ctx, n, ever); err != nil {
		p.t.Fatalf("%v\n%s", err, p.Log())
	}
}

func (p *runningAdapter) resultOf(d slacktest.Delivery) slacktest.Result {
	p.t.Helper()
	result, err := d.Wait(p.ctx)
	if err != nil {
		p.t.Fatalf("%v\n%s", err, p.Log())
	}
	return result
}

// acks waits until there are n acknowledgements, and returns all.
func (p *runningAdapter) acks(n int) []slacktest.Ack {
	p.t.Helper()
	acks, err := p.server.AwaitAcks(p.ctx, n)
	if err != nil {
		p.t.Fatalf("%v\n%s", err, p.Log())
	}
	return acks
}

func (p *runningAdapter) say(text string) slacktest.Delivery {
	_, deliveries := p.server.Say(slacktest.Message{Channel: "D0OLIVIA", ChannelType: "im", User: "U1", Text: text})
	return deliveries[0]
}

// texts returns the accepted messages in order, each once.
func (c *memoryInbox) texts() (texts []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.accepted {
		_, after, _ := strings.Cut(string(e.Body), `"text":"`)
		text, _, _ := strings.Cut(after, `"`)
		if !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return texts
}

// gatedInbox is an inbox that waits before it answers.
type gatedInbox struct {
	memoryInbox
	entered chan struct{}
	place   chan struct{} // nil: an envelope has its place at once
	open    chan struct{}
}

func newGatedInbox() *gatedInbox {
	return &gatedInbox{entered: make(chan struct{}, 1000), open: make(chan struct{})}
}

func (g *gatedInbox) Accept(ctx context.Context, envelope event.Envelope) (adapters.Receipt, error) {
	g.entered <- struct{}{}
	if g.place != nil {
		<-g.place
	}
	envelope.Queued()
	<-g.open
	return g.memoryInbox.Accept(ctx, envelope)
}

func TestFrameIsAcknowledgedAfterDurableAccept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inbox := newGatedInbox()
		p := runAdapter(t, slacktest.Options{}, 1, testapp.FastTimes, inbox)
		p.up()
		d := p.say("hi")
		<-inbox.entered
		synctest.Wait()
		if acks := p.acks(0); len(acks) != 0 {
			t.Errorf("acknowledged before the durable accept: %+v", acks)
		}
		close(inbox.open)
		if result := p.resultOf(d); result.State != slacktest.Acked || result.Attempts != 1 {
			t.Errorf("%+v", result)
		}
		e := inbox.accepted[0]
		if e.Transport != "socket" || e.Workspace != "acme" || e.Platform != event.Slack || !e.ReceivedAt.Equal(testapp.Noon) {
			t.Errorf("%+v", e)
		}
		if body := string(e.Body); !strings.HasPrefix(body, `{"envelope_id":"`+d.EnvelopeID()) || !strings.HasSuffix(body, `"retry_reason":""}`) {
			t.Errorf("the frame was changed: %s", body)
		}
	})
}

// busyInbox is an inbox that refuses the first envelopes.
type busyInbox struct {
	memoryInbox
	mu    sync.Mutex
	first int
}

func (b *busyInbox) Accept(ctx context.Context, envelope event.Envelope) (adapters.Receipt, error) {
	b.mu.Lock()
	b.first--
	refuse := b.first >= 0
	b.mu.Unlock()
	if refuse {
		return adapters.Receipt{}, fmt.Errorf("commit: %w", adapters.ErrBusy)
	}
	return b.memoryInbox.Accept(ctx, envelope)
}

// fastRetries are the options of a Slack that retries after a short time.
func fastRetries() slacktest.Options {
	return slacktest.Options{SocketOptions: slacktest.SocketOptions{
		AckWithin: 150 * time.Millisecond, Repeat: []time.Duration{0, time.Millisecond, time.Millisecond}, Grace: 30 * time.Millisecond,
	}}
}

// TestEventAfterItsLastRetryIsAGap: the event is missing, as if no socket had been open.
// Only its channel has a gap.
func TestEventAfterItsLastRetryIsAGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := runAdapter(t, fastRetries(), 1, testapp.FastTimes, &busyInbox{first: 4})
		p.up()
		if result := p.resultOf(p.say("missed")); result.State != slacktest.Unacked {
			t.Errorf("%+v", result)
		}
		if result := p.resultOf(p.say("taken")); result.State != slacktest.Acked {
			t.Errorf("%+v", result)
		}
		if len(p.Missed) != 1 || <-p.Missed != "D0OLIVIA" {
			t.Error("its channel is not reported once")
		}
	})
}

// TestSocketMarksRetries: a retry may mean that other events are missing.
func TestSocketMarksRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inbox := &busyInbox{first: 1}
		p := runAdapter(t, fastRetries(), 1, testapp.FastTimes, inbox)
		p.up()
		for _, text := range []string{"sent twice", "sent once"} {
			if result := p.resultOf(p.say(text)); result.State != slacktest.Acked {
				t.Errorf("%s: %+v", text, result)
			}
		}
		if len(inbox.accepted) != 2 || !inbox.accepted[0].Retried || inbox.accepted[1].Retried {
			t.Errorf("%+v", inbox.accepted)
		}
	})
}

func TestMalformedFrameIsAcceptedAndAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var inbox memoryInbox
		p := runAdapter(t, slacktest.Options{}, 1, testapp.FastTimes, &inbox)
		p.up()
		frames := []string{
			`{"envelope_id":"broken-1","type":"events_api","payload":{"event":`,                                                                         // no JSON
			`{"envelope_id":"strange-2","type":"events_api","payload":{"type":"event_callback","event":{"type":"message","ts":7}},"retry_attempt":"x"}`, // no event
			`{"envelope_id":"later-3","type":"an invention"}`,
			`no JSON at all`,
		}
		for _, frame := range frames {
			p.server.SendFrame([]byte(frame))
		}
		p.server.SendFrame([]byte(`{"type":"pleasantry"}`))
		last := p.say("the last")
		p.resultOf(last)
		var acked []string
		for _, ack := range p.acks(4) {
			acked = append(acked, ack.EnvelopeID)
		}
		slices.Sort(acked)
		want := []string{last.EnvelopeID(), "broken-1", "later-3", "strange-2"}
		slices.Sort(want)
		if diff := cmp.Diff(want, acked); diff != "" {
			t.Error(diff)
		}
		synctest.Wait()
		for _, frame := range frames {
			if !slices.Contains(inbox.bodies(), frame) {
				t.Errorf("%s was not accepted", frame)
			}
		}
	})
}

func (c *memoryInbox) bodies() (bodies []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.accepted {
		bodies = append(bodies, string(e.Body))
	}
	return bodies
}

func TestTooLargeFrameEndsItsSocket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var inbox memoryInbox
		p := runAdapter(t, slacktest.Options{}, 1, testapp.FastTimes, &inbox)
		p.up()
		p.server.SendFrame([]byte(`{"type":"events_api","envelope_id":"` + strings.Repeat("x", 1<<20) + `"}`))
		p.up()
		if len(inbox.bodies()) != 0 {
			t.Errorf("%d accepted\n%s", len(inbox.bodies()), p.Log())
		}
	})
}

// TestPanicFailsOneFrame: Slack sends the frame again, and the adapter logs the panic.
func TestPanicFailsOneFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inbox := &panickingInbox{}
		p := runAdapter(t, fastRetries(), 1, testapp.FastTimes, inbox)
		p.up()
		if result := p.resultOf(p.say("hi")); result.State != slacktest.Acked || result.Attempts != 2 {
			t.Errorf("%+v", result)
		}
		if !strings.Contains(p.Log(), "level=ERROR") {
			t.Error(p.Log())
		}
	})
}

// panickingInbox is an inbox that panics at the first envelope.
type panickingInbox struct {
	memoryInbox
	once sync.Once
}

func (f *panickingInbox) Accept(ctx context.Context, envelope event.Envelope) (adapters.Receipt, error) {
	f.once.Do(func() { panic("a bug") })
	return f.memoryInbox.Accept(ctx, envelope)
}

// TestSlowAcceptsRunTogether: a frame waits only briefly for the place of the earlier frame.
func TestSlowAcceptsRunTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inbox := newGatedInbox()
		inbox.place = make(chan struct{})
		times := testapp.FastTimes
		times.OrderWait = time.Millisecond
		p := runAdapter(t, slacktest.Options{}, 1, times, inbox)
		p.up()
		var deliveries []slacktest.Delivery
		for n := range 5 {
			deliveries = append(deliveries, p.say(fmt.Sprint("word ", n)))
		}
		for range deliveries {
			<-inbox.entered
		}
		close(inbox.place)
		close(inbox.open)
		for _, d := range deliveries {
			p.resultOf(d)
		}
	})
}

// TestBlockedInboxDoesNotBlockTheSocket: every frame reaches the inbox, and the socket stays
// open.
func TestBlockedInboxDoesNotBlockTheSocket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inbox := newGatedInbox()
		times := testapp.FastTimes
		times.Silence, times.Ping = 500*time.Millisecond, 50*time.Millisecond
		options := slacktest.Options{SocketOptions: slacktest.SocketOptions{AckWithin: 200 * time.Millisecond, Repeat: []time.Duration{0, time.Second, time.Second}}}
		p := runAdapter(t, options, 1, times, inbox)
		p.up()
		var deliveries []slacktest.Delivery
		for n := range 80 {
			_, ds := p.server.Say(slacktest.Message{Channel: fmt.Sprint("C", n), User: "U1", Text: fmt.Sprint("word ", n)})
			deliveries = append(deliveries, ds...)
		}
		for range deliveries {
			<-inbox.entered
		}
		p.server.Disconnect("warning", slacktest.All) // arrives after the frames
		if err := p.server.AwaitFresh(p.ctx, 1); err != nil {
			t.Fatalf("%v\n%s", err, p.Log())
		}
		close(inbox.open)
		for _, d := range deliveries {
			if result := p.resultOf(d); result.State != slacktest.Acked {
				t.Errorf("%+v", result)
			}
		}
		if len(inbox.texts()) != 80 || len(p.Ups) != 0 {
			t.Errorf("%d texts, %d gaps", len(inbox.texts()), len(p.Ups))
		}
	})
}

// TestFramesAreAcceptedInOrder also checks that a frame does not wait for the commit of the
// earlier ones.
func TestFramesAreAcceptedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inbox := newGatedInbox()
		inbox.place = make(chan struct{})
		times := testapp.FastTimes
		times.OrderWait = time.Hour
		p := runAdapter(t, slacktest.Options{}, 2, times, inbox)
		p.sockets(2, 2)
		var deliveries []slacktest.Delivery
		for _, text := range []string{"one", "two", "three", "four"} {
			deliveries = append(deliveries, p.say(text))
			if text == "one" {
				<-inbox.entered // the order across sockets is open, so wait until this frame is in flight
			}
		}
		synctest.Wait()
		if len(inbox.entered) != 0 {
			t.Error("a frame overtakes one that has no place yet")
		}
		close(inbox.place)
		for range deliveries[1:] {
			<-inbox.entered // before any commit
		}
		close(inbox.open)
		for _, d := range deliveries {
			p.resultOf(d)
		}
	})
}
