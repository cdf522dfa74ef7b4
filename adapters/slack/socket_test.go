package slack_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/adapters"
	"parley/adapters/slack"
	"parley/adapters/slack/slacktest"
	"parley/config/secret"
	"parley/ingest/event"
)

// patience bounds every wait of a test.
const patience = 20 * time.Second

// teller hears what the adapter tells of its connection.
type teller struct {
	ups   chan event.Self
	downs chan error
	mu    sync.Mutex
	words bytes.Buffer
}

// Write implements io.Writer, for the log.
func (l *teller) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.words.Write(p)
}

func (l *teller) log() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.words.String()
}

func (l *teller) link() adapters.Link {
	return adapters.Link{
		Up:   func(self event.Self) { l.ups <- self },
		Down: func(err error) { l.downs <- err },
		Log:  slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
}

// plugged is an adapter in Socket Mode that runs against a fake.
type plugged struct {
	*teller
	t      *testing.T
	ctx    context.Context // bounds every wait
	server *slacktest.Server
	stop   context.CancelFunc
	ended  chan error // of Run
}

// swift makes trouble pass quickly.
var swift = slack.SocketTimes{Pace: time.Millisecond, BackMin: time.Millisecond, BackMax: 4 * time.Millisecond, Crowded: time.Millisecond}

// plug runs an adapter until the test ends.
func plug(t *testing.T, options slacktest.Options, sockets int, times slack.SocketTimes, inbox adapters.Inbox) *plugged {
	t.Helper()
	server, err := slacktest.Start(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return plugInto(t, server, sockets, times, inbox)
}

func plugInto(t *testing.T, server *slacktest.Server, sockets int, times slack.SocketTimes, inbox adapters.Inbox) *plugged {
	t.Helper()
	c := config(server.URL())
	c.Mode, c.AppToken, c.Sockets = slack.ModeSocket, secret.New(slacktest.AppToken), sockets
	adapter := slack.New("acme", c)
	adapter.SetClock(func() time.Time { return noon })
	adapter.SetSocketTimes(times)
	p := &plugged{t: t, server: server, ended: make(chan error, 1), teller: &teller{ups: make(chan event.Self, 1000), downs: make(chan error, 1000)}}
	var cancel context.CancelFunc
	p.ctx, cancel = context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	running, stop := context.WithCancel(p.ctx)
	finished := make(chan struct{})
	p.stop = func() {
		stop()
		<-finished
	}
	go func() {
		defer close(finished)
		p.ended <- adapter.Run(running, inbox, p.link())
	}()
	t.Cleanup(p.stop)
	return p
}

// up waits until the adapter says that events can arrive.
func (p *plugged) up() event.Self {
	p.t.Helper()
	select {
	case self := <-p.ups:
		return self
	case err := <-p.ended:
		p.t.Fatalf("Run ended with %v\n%s", err, p.log())
	case <-p.ctx.Done():
		p.t.Fatalf("not up\n%s", p.log())
	}
	return event.Self{}
}

// end waits for the end of Run.
func (p *plugged) end() error {
	p.t.Helper()
	select {
	case err := <-p.ended:
		return err
	case <-p.ctx.Done():
		p.t.Fatalf("Run goes on\n%s", p.log())
	}
	return nil
}

// sockets waits until exactly so many are open, and so many ever were.
func (p *plugged) sockets(n, ever int) {
	p.t.Helper()
	if err := p.server.AwaitSockets(p.ctx, n, ever); err != nil {
		p.t.Fatalf("%v\n%s", err, p.log())
	}
}

func (p *plugged) fate(d slacktest.Delivery) slacktest.Result {
	p.t.Helper()
	fate, err := d.Wait(p.ctx)
	if err != nil {
		p.t.Fatalf("%v\n%s", err, p.log())
	}
	return fate
}

func (p *plugged) say(text string) slacktest.Delivery {
	_, deliveries := p.server.Say(slacktest.Message{Channel: "D0OLIVIA", ChannelType: "im", User: "U1", Text: text})
	return deliveries[0]
}

// texts are what the inbox has taken, in its order, each message once.
func (c *custody) texts() (texts []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.taken {
		_, after, _ := strings.Cut(string(e.Body), `"text":"`)
		text, _, _ := strings.Cut(after, `"`)
		if !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return texts
}

// gate is an inbox that waits before it answers.
type gate struct {
	custody
	entered chan struct{}
	open    chan struct{}
}

func newGate() *gate { return &gate{entered: make(chan struct{}, 1000), open: make(chan struct{})} }

func (g *gate) Accept(ctx context.Context, envelope event.Envelope) (adapters.Receipt, error) {
	g.entered <- struct{}{}
	<-g.open
	return g.custody.Accept(ctx, envelope)
}

func TestAFrameIsAcknowledgedOnceItIsDurable(t *testing.T) {
	inbox := newGate()
	p := plug(t, slacktest.Options{}, 1, swift, inbox)
	p.up()
	d := p.say("hi")
	<-inbox.entered
	ctx, cancel := context.WithTimeout(p.ctx, 30*time.Millisecond)
	defer cancel()
	if acks, _ := p.server.AwaitAcks(ctx, 1); len(acks) != 0 {
		t.Errorf("acknowledged before custody: %+v", acks)
	}
	close(inbox.open)
	if fate := p.fate(d); fate.State != slacktest.Acked || fate.Attempts != 1 {
		t.Errorf("%+v", fate)
	}
	e := inbox.taken[0]
	if e.Transport != "socket" || e.Workspace != "acme" || e.Platform != event.Slack || !e.ReceivedAt.Equal(noon) {
		t.Errorf("%+v", e)
	}
	if body := string(e.Body); !strings.HasPrefix(body, `{"envelope_id":"`+d.EnvelopeID()) || !strings.HasSuffix(body, `"retry_reason":""}`) {
		t.Errorf("the frame is not as it came: %s", body)
	}
}

// busy is an inbox that can't take the first n envelopes.
type busy struct {
	custody
	mu    sync.Mutex
	first int
}

func (b *busy) Accept(ctx context.Context, envelope event.Envelope) (adapters.Receipt, error) {
	b.mu.Lock()
	b.first--
	refuse := b.first >= 0
	b.mu.Unlock()
	if refuse {
		return adapters.Receipt{}, fmt.Errorf("commit: %w", adapters.ErrBusy)
	}
	return b.custody.Accept(ctx, envelope)
}

// hasty is a Slack that sends again soon.
func hasty() slacktest.Options {
	return slacktest.Options{SocketOptions: slacktest.SocketOptions{
		AckWithin: 150 * time.Millisecond, Repeat: []time.Duration{0, time.Millisecond, time.Millisecond}, Grace: 30 * time.Millisecond,
	}}
}

// TestWhatSlackHasGivenUpIsAGap: the event is missed, as if nothing had been open.
func TestWhatSlackHasGivenUpIsAGap(t *testing.T) {
	p := plug(t, hasty(), 1, swift, &busy{first: 4})
	p.up()
	if fate := p.fate(p.say("missed")); fate.State != slacktest.Unacked {
		t.Errorf("%+v", fate)
	}
	if fate := p.fate(p.say("taken")); fate.State != slacktest.Acked {
		t.Errorf("%+v", fate)
	}
	p.up()
}

// TestWhatSlackSendsAgainSaysSo: other events may have been missed.
func TestWhatSlackSendsAgainSaysSo(t *testing.T) {
	inbox := &busy{first: 1}
	p := plug(t, hasty(), 1, swift, inbox)
	p.up()
	for _, text := range []string{"sent twice", "sent once"} {
		if fate := p.fate(p.say(text)); fate.State != slacktest.Acked {
			t.Errorf("%s: %+v", text, fate)
		}
	}
	if len(inbox.taken) != 2 || !inbox.taken[0].Retried || inbox.taken[1].Retried {
		t.Errorf("%+v", inbox.taken)
	}
}

func TestAMalformedFrameIsKeptAndAcknowledged(t *testing.T) {
	var inbox custody
	p := plug(t, slacktest.Options{}, 1, swift, &inbox)
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
	p.fate(last)
	acks, err := p.server.AwaitAcks(p.ctx, 4)
	if err != nil {
		t.Fatal(err)
	}
	var acked []string
	for _, ack := range acks {
		acked = append(acked, ack.EnvelopeID)
	}
	slices.Sort(acked)
	want := []string{last.EnvelopeID(), "broken-1", "later-3", "strange-2"}
	slices.Sort(want)
	if diff := cmp.Diff(want, acked); diff != "" {
		t.Error(diff)
	}
	for end := time.After(patience); len(inbox.bodies()) < 5; {
		select {
		case <-end:
			t.Fatalf("%q", inbox.bodies())
		case <-time.After(time.Millisecond):
		}
	}
	for _, frame := range frames {
		if !slices.Contains(inbox.bodies(), frame) {
			t.Errorf("%s was not kept", frame)
		}
	}
}

func (c *custody) bodies() (bodies []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.taken {
		bodies = append(bodies, string(e.Body))
	}
	return bodies
}

func TestAFrameTooLargeEndsItsSocket(t *testing.T) {
	var inbox custody
	p := plug(t, slacktest.Options{}, 1, swift, &inbox)
	p.up()
	p.server.SendFrame([]byte(`{"type":"events_api","envelope_id":"` + strings.Repeat("x", 1<<20) + `"}`))
	p.up()
	if !strings.Contains(p.log(), "a frame is larger than 1048576 bytes") || len(inbox.bodies()) != 0 {
		t.Errorf("%d taken\n%s", len(inbox.bodies()), p.log())
	}
}

// TestAPanicIsThatFramesFailure.
func TestAPanicIsThatFramesFailure(t *testing.T) {
	inbox := &frail{}
	p := plug(t, hasty(), 1, swift, inbox)
	p.up()
	if fate := p.fate(p.say("hi")); fate.State != slacktest.Acked || fate.Attempts != 2 {
		t.Errorf("%+v", fate)
	}
	if !strings.Contains(p.log(), "panicked") {
		t.Error(p.log())
	}
}

type frail struct {
	custody
	once sync.Once
}

func (f *frail) Accept(ctx context.Context, envelope event.Envelope) (adapters.Receipt, error) {
	f.once.Do(func() { panic("a bug") })
	return f.custody.Accept(ctx, envelope)
}

// TestSlowCommitsAreShared: a frame does not wait long for the one before.
func TestSlowCommitsAreShared(t *testing.T) {
	inbox := newGate()
	times := swift
	times.Lead = time.Millisecond
	p := plug(t, slacktest.Options{}, 1, times, inbox)
	p.up()
	var deliveries []slacktest.Delivery
	for n := range 5 {
		deliveries = append(deliveries, p.say(fmt.Sprint("word ", n)))
	}
	for range deliveries {
		<-inbox.entered
	}
	close(inbox.open)
	for _, d := range deliveries {
		p.fate(d)
	}
}

// TestAStuckInboxDoesNotStopTheRest: what finds no room is left to Slack, and the
// socket lives.
func TestAStuckInboxDoesNotStopTheRest(t *testing.T) {
	inbox := newGate()
	times := swift
	times.Slot, times.Silence, times.Ping = 5*time.Millisecond, 500*time.Millisecond, 50*time.Millisecond
	options := slacktest.Options{SocketOptions: slacktest.SocketOptions{AckWithin: 200 * time.Millisecond, Repeat: []time.Duration{0, time.Second, time.Second}}}
	p := plug(t, options, 1, times, inbox)
	p.up()
	var deliveries []slacktest.Delivery
	for n := range 80 {
		_, ds := p.server.Say(slacktest.Message{Channel: fmt.Sprint("C", n), User: "U1", Text: fmt.Sprint("word ", n)})
		deliveries = append(deliveries, ds...)
	}
	for range 64 {
		<-inbox.entered
	}
	p.server.Disconnect("warning", slacktest.All) // it is heard behind what finds no room
	if err := p.server.AwaitFresh(p.ctx, 1); err != nil {
		t.Fatalf("%v\n%s", err, p.log())
	}
	close(inbox.open)
	for _, d := range deliveries {
		if fate := p.fate(d); fate.State != slacktest.Acked {
			t.Errorf("%+v", fate)
		}
	}
	if len(inbox.texts()) != 80 || len(p.ups) != 0 {
		t.Errorf("%d texts, %d gaps", len(inbox.texts()), len(p.ups))
	}
}

// TestAConversationsFramesAreTakenInOrder, and those of others meanwhile.
func TestAConversationsFramesAreTakenInOrder(t *testing.T) {
	inbox := newGate()
	times := swift
	times.Lead = time.Hour
	p := plug(t, slacktest.Options{}, 2, times, inbox)
	p.sockets(2, 2)
	var deliveries []slacktest.Delivery
	for _, text := range []string{"one", "two", "three", "four"} {
		deliveries = append(deliveries, p.say(text))
		if text == "one" {
			<-inbox.entered // the sockets have no order among them, but this one is under way
		}
	}
	_, elsewhere := p.server.Say(slacktest.Message{Channel: room, User: "U1", Text: "elsewhere"})
	<-inbox.entered
	if len(inbox.entered) != 0 {
		t.Error("more than one frame of a conversation is under way")
	}
	close(inbox.open)
	for _, d := range append(deliveries, elsewhere...) {
		p.fate(d)
	}
	if texts := inbox.texts(); slices.Index(texts, "one") > slices.Index(texts, "two") || len(texts) != 5 {
		t.Errorf("%q", texts)
	}
}
