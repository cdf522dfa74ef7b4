package slack_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
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

func (p *plugged) fate(d slacktest.Delivery) slacktest.Fate {
	p.t.Helper()
	fate, err := d.Wait(p.ctx)
	if err != nil {
		p.t.Fatalf("%v\n%s", err, p.log())
	}
	return fate
}

func (p *plugged) say(text string) slacktest.Delivery {
	_, deliveries := p.server.Say(slacktest.Message{Channel: room, User: "U1", Text: text})
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

func TestASocketTellsWhoWeAre(t *testing.T) {
	p := plug(t, slacktest.Options{}, 1, swift, &custody{})
	want := event.Self{TeamID: "T0TEAM", AppID: "A0APP", UserID: "U0BOT", BotID: "B0BOT"}
	if diff := cmp.Diff(want, p.up()); diff != "" {
		t.Error(diff)
	}
	p.stop()
	if err := p.end(); err != nil {
		t.Errorf("Run ended with %v", err)
	}
	p.sockets(0, 1)
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

func TestWithoutCustodySlackSendsAgain(t *testing.T) {
	inbox := &busy{first: 2}
	p := plug(t, hasty(), 1, swift, inbox)
	p.up()
	if fate := p.fate(p.say("hi")); fate.State != slacktest.Acked || fate.Attempts != 3 {
		t.Errorf("%+v", fate)
	}
	if !strings.Contains(string(inbox.taken[0].Body), `"retry_attempt":2`) {
		t.Errorf("%s", inbox.taken[0].Body)
	}
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

// TestTheNextSocketIsOpenBeforeTheOldOneGoes, while events come.
func TestTheNextSocketIsOpenBeforeTheOldOneGoes(t *testing.T) {
	for _, reason := range []string{"warning", "refresh_requested"} {
		var inbox custody
		options := slacktest.Options{SocketOptions: slacktest.SocketOptions{Grace: 300 * time.Millisecond}}
		p := plug(t, options, 1, swift, &inbox)
		p.up()
		var deliveries []slacktest.Delivery
		var want []string
		for round := range 5 {
			for n := range 20 {
				text := fmt.Sprintf("%s %d/%02d", reason, round, n)
				want = append(want, text)
				deliveries = append(deliveries, p.say(text))
				if n == 10 && p.server.Disconnect(reason, slacktest.All) != 1 {
					t.Error("there is not one socket to tell")
				}
			}
			p.sockets(1, round+2)
		}
		for i, d := range deliveries {
			if fate := p.fate(d); fate.State != slacktest.Acked {
				t.Errorf("%s: %+v", want[i], fate)
			}
		}
		if diff := cmp.Diff(want, inbox.texts()); diff != "" {
			t.Error(diff)
		}
		if _, most := p.server.Sockets(); most != 2 || p.server.Missed() != 0 || len(p.ups) != 0 {
			t.Errorf("%s: %d sockets at most, %d events missed, %d gaps", reason, most, p.server.Missed(), len(p.ups))
		}
	}
}

func TestSeveralSockets(t *testing.T) {
	var inbox custody
	p := plug(t, slacktest.Options{}, 3, swift, &inbox)
	p.sockets(3, 3)
	p.up()
	var want []string
	for n := range 60 {
		text := fmt.Sprint("word ", n)
		want = append(want, text)
		defer p.fate(p.say(text))
	}
	acks, err := p.server.AwaitAcks(p.ctx, 60)
	if err != nil {
		t.Fatal(err)
	}
	over := map[int]int{}
	for _, ack := range acks {
		over[ack.Socket]++
	}
	if len(over) != 3 || len(inbox.texts()) != len(want) {
		t.Errorf("%v, %d texts", over, len(inbox.texts()))
	}
	p.server.Cut(1)
	p.sockets(3, 4)
	if len(p.ups) != 0 {
		t.Error("one of three was a gap")
	}
}

func TestACutSocketIsReplacedAndAGap(t *testing.T) {
	var inbox custody
	p := plug(t, slacktest.Options{}, 1, swift, &inbox)
	p.up()
	for n := range 5 {
		p.server.Cut(slacktest.All)
		p.up()
		p.sockets(1, n+2)
	}
	if fate := p.fate(p.say("hi")); fate.State != slacktest.Acked {
		t.Errorf("%+v", fate)
	}
}

func TestAHalfOpenSocketIsNoticed(t *testing.T) {
	times := swift
	times.Ping, times.Silence = 20*time.Millisecond, 200*time.Millisecond
	p := plug(t, slacktest.Options{SocketOptions: slacktest.SocketOptions{AckWithin: 100 * time.Millisecond, Repeat: []time.Duration{0, time.Second}}}, 1, times, &custody{})
	p.up()
	p.server.Mute(1)
	d := p.say("into the void")
	p.up()
	if fate := p.fate(d); fate.State != slacktest.Acked {
		t.Errorf("%+v", fate)
	}
	if !strings.Contains(p.log(), "nothing was heard of slack for 200ms") {
		t.Error(p.log())
	}
	p.sockets(1, 2)
}

// TestAQuietSocketLives: one that Slack does not ping answers our pings.
func TestAQuietSocketLives(t *testing.T) {
	times := swift
	times.Ping, times.Silence = 10*time.Millisecond, 100*time.Millisecond
	p := plug(t, slacktest.Options{SocketOptions: slacktest.SocketOptions{PingEvery: time.Hour}}, 1, times, &custody{})
	p.up()
	ctx, cancel := context.WithTimeout(p.ctx, 400*time.Millisecond)
	defer cancel()
	if err := p.server.AwaitSockets(ctx, 1, 2); err == nil {
		t.Errorf("it was replaced\n%s", p.log())
	}
}

func TestOpeningIsTriedAgain(t *testing.T) {
	const open = "apps.connections.open"
	for name, script := range map[string]func(*slacktest.Server){
		"a server error":    func(s *slacktest.Server) { s.Script(open, slacktest.Fault{Status: 502}, slacktest.Fault{Status: 500}) },
		"an internal error": func(s *slacktest.Server) { s.Script(open, slacktest.Fault{Error: "internal_error"}) },
		"a cut call":        func(s *slacktest.Server) { s.Script(open, slacktest.Fault{Cut: true}) },
		"no address": func(s *slacktest.Server) {
			s.Script(open, slacktest.Fault{Body: `{"ok":true,"url":"https://example.com/"}`})
		},
		"too many":        func(s *slacktest.Server) { s.Script(open, slacktest.Fault{Error: "too_many_websockets"}) },
		"no websocket":    func(s *slacktest.Server) { s.Script(slacktest.LinkStep, slacktest.Fault{Status: 408}) },
		"a cut handshake": func(s *slacktest.Server) { s.Script(slacktest.LinkStep, slacktest.Fault{Cut: true}) },
		"a cut socket":    func(s *slacktest.Server) { s.Script(slacktest.HelloStep, slacktest.Fault{Cut: true}) },
		"no hello":        func(s *slacktest.Server) { s.Script(slacktest.HelloStep, slacktest.Fault{Hold: make(chan struct{})}) },
		"sent away": func(s *slacktest.Server) {
			s.Script(slacktest.HelloStep, slacktest.Fault{Body: `{"type":"disconnect","reason":"warning"}`})
		},
		"sent away, crowded": func(s *slacktest.Server) {
			s.Script(slacktest.HelloStep, slacktest.Fault{Body: `{"type":"disconnect","reason":"too_many_websockets"}`})
		},
	} {
		t.Run(name, func(t *testing.T) {
			server, err := slacktest.Start(slacktest.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer server.Close()
			script(server)
			times := swift
			times.Hello = 50 * time.Millisecond
			p := plugInto(t, server, 1, times, &custody{})
			defer p.stop()
			p.up()
			p.fate(p.say("hi"))
			for _, words := range []string{"ticket=", "xapp-"} {
				if strings.Contains(p.log(), words) {
					t.Errorf("the log says %s: %s", words, p.log())
				}
			}
			if !strings.Contains(p.log(), "level=WARN") {
				t.Errorf("nobody hears of it: %s", p.log())
			}
		})
	}
}

func TestA429IsHeeded(t *testing.T) {
	var mu sync.Mutex
	var asked []time.Time
	options := slacktest.Options{OnCall: func(c slacktest.Call) {
		if c.Method == "apps.connections.open" {
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, time.Now())
		}
	}}
	server, err := slacktest.Start(options)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	server.Script("apps.connections.open", slacktest.RateLimited(time.Second))
	p := plugInto(t, server, 1, swift, &custody{})
	defer p.stop()
	p.up()
	if len(asked) != 2 || asked[1].Sub(asked[0]) < time.Second {
		t.Errorf("asked at %v", asked)
	}
}

func TestSocketModeIsRefused(t *testing.T) {
	for code, hint := range map[string]string{
		"invalid_auth": "app_token", "not_authed": "app_token", "not_allowed_token_type": "app_token", "token_revoked": "generate",
		"account_inactive": "generate", "missing_scope": "connections:write",
	} {
		server, err := slacktest.Start(slacktest.Options{})
		if err != nil {
			t.Fatal(err)
		}
		server.Script("apps.connections.open", slacktest.Fault{Error: code})
		p := plugInto(t, server, 2, swift, &custody{})
		var refused *adapters.RefusedError
		if err := p.end(); !errors.As(err, &refused) || !strings.Contains(refused.Hint, hint) || !strings.Contains(err.Error(), code) {
			t.Errorf("%s: %v", code, err)
		}
		p.sockets(0, 0) // of the keeper that was not refused, too
		_ = server.Close()
	}
}

func TestTheBotTokenIsAskedForFirst(t *testing.T) {
	server, err := slacktest.Start(slacktest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	server.Script("auth.test", slacktest.Fault{Error: "invalid_auth"})
	p := plugInto(t, server, 1, swift, &custody{})
	var refused *adapters.RefusedError
	if err := p.end(); !errors.As(err, &refused) || !strings.Contains(refused.Hint, "bot_token") {
		t.Errorf("%v", err)
	}
	p.sockets(0, 0)
}

func TestSocketModeMayBeSwitchedOff(t *testing.T) {
	p := plug(t, slacktest.Options{}, 2, swift, &custody{})
	p.sockets(2, 2)
	p.server.Disconnect("link_disabled", 1)
	var refused *adapters.RefusedError
	if err := p.end(); !errors.As(err, &refused) || !strings.Contains(refused.Hint, "Socket Mode") {
		t.Errorf("%v", err)
	}
	p.sockets(0, 2)
}

// TestNeverMoreThanTen, whatever Slack asks for.
func TestNeverMoreThanTen(t *testing.T) {
	for _, n := range []int{7, 10} {
		options := slacktest.Options{SocketOptions: slacktest.SocketOptions{Grace: 100 * time.Millisecond}}
		p := plug(t, options, n, swift, &custody{})
		for round := range 3 {
			p.sockets(n, n*(round+1))
			p.server.Disconnect("warning", slacktest.All)
			p.fate(p.say("hi"))
		}
		p.sockets(n, 4*n)
		if _, most := p.server.Sockets(); most > 10 || n < 10 && most <= n || strings.Contains(p.log(), "too_many") {
			t.Errorf("%d configured: %d at most\n%s", n, most, p.log())
		}
	}
}

// TestTheOldOneMakesRoom where others have the rest of the ten.
func TestTheOldOneMakesRoom(t *testing.T) {
	times := swift
	times.Crowded = time.Hour
	options := slacktest.Options{SocketOptions: slacktest.SocketOptions{Grace: time.Hour}}
	p := plug(t, options, 1, times, &custody{})
	p.up()
	plugInto(t, p.server, 9, times, &custody{}).sockets(10, 10)
	p.server.Disconnect("warning", 1)
	p.up() // which is a gap, but the shorter one
	p.sockets(10, 11)
}

func TestADeadWorkspaceIsNotUp(t *testing.T) {
	times := swift
	times.Patience = 50 * time.Millisecond
	var gone sync.Mutex
	down := false
	options := slacktest.Options{Plan: func(c slacktest.Call) slacktest.Fault {
		gone.Lock()
		defer gone.Unlock()
		if down && c.Method == "apps.connections.open" {
			return slacktest.Fault{Status: http.StatusServiceUnavailable}
		}
		return slacktest.Fault{}
	}}
	p := plug(t, options, 2, times, &custody{})
	p.up()
	p.sockets(2, 2)
	set := func(to bool) {
		gone.Lock()
		defer gone.Unlock()
		down = to
	}
	set(true)
	p.server.Cut(slacktest.All)
	select {
	case err := <-p.downs:
		if !strings.Contains(err.Error(), "no socket is open") {
			t.Errorf("%v", err)
		}
	case <-p.ctx.Done():
		t.Fatal(p.log())
	}
	set(false)
	p.up()
	if warnings := strings.Count(p.log(), "level=WARN"); warnings > 3 {
		t.Errorf("%d warnings:\n%s", warnings, p.log())
	}
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

// TestStoppingAcknowledgesWhatWasTaken, and leaves the rest to Slack.
func TestStoppingAcknowledgesWhatWasTaken(t *testing.T) {
	inbox := newGate()
	p := plug(t, slacktest.Options{}, 1, swift, inbox)
	p.up()
	d := p.say("hi")
	<-inbox.entered
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		p.stop()
	}()
	select {
	case <-stopped:
		t.Error("Run ended with a frame under way")
	case <-time.After(30 * time.Millisecond):
	}
	close(inbox.open)
	<-stopped
	if fate := p.fate(d); fate.State != slacktest.Acked || fate.Attempts != 1 {
		t.Errorf("%+v", fate)
	}
	p.sockets(0, 1)
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

func TestNothingIsLeftRunning(t *testing.T) {
	before := runtime.NumGoroutine()
	p := plug(t, hasty(), 3, swift, &custody{})
	p.sockets(3, 3)
	p.server.Disconnect("warning", 1)
	p.server.Mute(1)
	p.fate(p.say("hi"))
	p.stop()
	_ = p.server.Close()
	http.DefaultClient.CloseIdleConnections()
	for end := time.Now().Add(patience); runtime.NumGoroutine() > before+2; { // an idle connection of the Web API has two
		if time.Now().After(end) {
			buffer := make([]byte, 1<<16)
			t.Fatalf("%d goroutines before, now %d\n%s", before, runtime.NumGoroutine(), buffer[:runtime.Stack(buffer, true)])
		}
		runtime.Gosched()
	}
}
