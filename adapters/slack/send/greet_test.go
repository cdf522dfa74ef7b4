package send_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"parley/adapters"
	"parley/adapters/adaptertest"
	"parley/adapters/guard"
	"parley/adapters/slack"
	"parley/adapters/slack/internal/testapp"
	"parley/adapters/slack/send"
	"parley/adapters/slack/slacktest"
	"parley/config/secret"
	"parley/ingest/event"
)

// onceInbox accepts each body once, and reports each repetition as a duplicate.
type onceInbox struct{ bodies sync.Map }

func (i *onceInbox) Accept(_ context.Context, envelope event.Envelope) (adapters.Receipt, error) {
	body := envelope.Body
	var frame struct{ Payload json.RawMessage }
	if json.Unmarshal(body, &frame) == nil && frame.Payload != nil {
		body = frame.Payload
	}
	_, known := i.bodies.LoadOrStore(string(body), true)
	return adapters.Receipt{ID: 1, Duplicate: known}, nil
}

// notedState is a state that notes each update after it has ended.
type notedState struct {
	*adaptertest.State
	updated chan string // names
}

func (s notedState) Update(ctx context.Context, name string, change func(string) string) error {
	defer func() { s.updated <- name }()
	return s.State.Update(ctx, name, change)
}

// greeted is a fake Slack with an adapter that suggests a prompt in new assistant threads.
type greeted struct {
	t       *testing.T
	ctx     context.Context // bounds every wait
	server  *slacktest.Server
	adapter *slack.Adapter
	state   notedState
	ups     chan event.Self
	calls   chan string // the threads in which prompts are suggested
	titles  chan string // the threads that get a title, and that; nil for none
}

// newGreeted starts a fake Slack and an adapter whose hook it calls. The adapter does not run.
func newGreeted(t *testing.T, mode string) *greeted {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testapp.WaitLimit)
	t.Cleanup(cancel)
	g := &greeted{
		t: t, ctx: ctx, state: notedState{adaptertest.NewState(), make(chan string, 1000)}, ups: make(chan event.Self, 10), calls: make(chan string, 1000),
	}
	var err error
	g.server, err = slacktest.Start(slacktest.Options{OnCall: func(c slacktest.Call) {
		if c.Method == "assistant.threads.setSuggestedPrompts" {
			g.calls <- c.Form.Get("thread_ts")
		}
		if c.Method == "assistant.threads.setTitle" && g.titles != nil {
			g.titles <- c.Form.Get("thread_ts") + " " + c.Form.Get("title")
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.server.Close() })
	c := testapp.Config(g.server.URL())
	c.Mode, c.AppToken = mode, secret.New(slacktest.AppToken)
	c.SuggestedPrompts = []send.Prompt{{Title: "Water", Message: "When do we water?"}}
	g.adapter = slack.New("acme", c)
	return g
}

// serve lets the fake Slack call the adapter's hook.
func (g *greeted) serve(inbox adapters.Inbox) {
	hook := httptest.NewServer(g.adapter.Handler(inbox, guard.New(func(string) {})))
	g.t.Cleanup(hook.Close)
	g.server.SetHook(slacktest.Hook{URL: hook.URL, Secret: testapp.Secret})
}

// run runs the adapter until the test ends, and waits until events can arrive.
func (g *greeted) run(inbox adapters.Inbox) {
	g.t.Helper()
	running, stop := context.WithCancel(g.ctx)
	var run sync.WaitGroup
	run.Go(func() {
		_ = g.adapter.Run(running, inbox, adapters.Link{
			Up: func(self event.Self) { g.ups <- self }, Down: func(error) {}, State: g.state, Log: slog.New(slog.DiscardHandler), Wants: testapp.NoWants,
		})
	})
	g.t.Cleanup(func() {
		stop()
		run.Wait()
	})
	next(g, g.ups)
}

// next returns the next value of a channel.
func next[T any](g *greeted, values <-chan T) (value T) {
	g.t.Helper()
	select {
	case value = <-values:
	case <-g.ctx.Done():
		g.t.Fatal("nothing came")
	}
	return value
}

// starts sends the event of a started thread, and waits until the adapter acknowledges it.
func (g *greeted) starts(conversation, thread, at string) {
	g.t.Helper()
	body := fmt.Appendf(nil, `{"type":"event_callback","team_id":%q,"api_app_id":%q,"event":{"type":"assistant_thread_started","event_ts":%q,
		"assistant_thread":{"user_id":"U0MARA","channel_id":%q,"thread_ts":%q,"context":{}}}}`, slacktest.Team, slacktest.App, at, conversation, thread)
	result, err := g.server.PushRaw(slacktest.EventsAPI, body).Wait(g.ctx)
	if err != nil || result.State != slacktest.Acked {
		g.t.Fatalf("%+v, %v", result, err)
	}
}

// awaitUpdate waits for an attempt to greet a thread.
func (g *greeted) awaitUpdate() {
	g.t.Helper()
	if name := next(g, g.state.updated); name != "greeted/D1" {
		g.t.Errorf("the state %q is updated", name)
	}
}

// TestStartedThreadIsGreetedOnce over both transports: not for a duplicate, not for a
// further event of the same thread, and not on another node.
func TestStartedThreadIsGreetedOnce(t *testing.T) {
	for _, mode := range []string{slack.ModeSocket, slack.ModeHTTP} {
		t.Run(mode, func(t *testing.T) {
			g, inbox := newGreeted(t, mode), new(onceInbox)
			if mode == slack.ModeHTTP {
				g.serve(inbox)
			}
			g.run(inbox)
			g.starts("D1", stamp(1), stamp(2))
			g.awaitUpdate()
			calls := []string{next(g, g.calls)}
			g.starts("D1", stamp(1), stamp(2))
			g.starts("D1", stamp(1), stamp(3))
			g.awaitUpdate()
			g.starts("D1", stamp(4), stamp(5))
			g.awaitUpdate()
			calls = append(calls, next(g, g.calls))
			if want := []string{stamp(1), stamp(4)}; !slices.Equal(calls, want) || len(g.calls) != 0 {
				t.Errorf("prompts in %q and %d more threads, want %q", calls, len(g.calls), want)
			}
			var prompts []slacktest.Prompt
			for len(prompts) == 0 && g.ctx.Err() == nil { // the call is noted before it has its effect
				_, prompts = g.server.Prompts("D1", stamp(4))
			}
			if want := []slacktest.Prompt{{Title: "Water", Message: "When do we water?"}}; !slices.Equal(prompts, want) {
				t.Errorf("prompts %+v", prompts)
			}

			other := newGreeted(t, slack.ModeHTTP)
			other.state = g.state
			other.serve(new(onceInbox))
			other.run(nil)
			other.starts("D1", stamp(4), stamp(5))
			other.awaitUpdate()
			other.starts("D1", stamp(6), stamp(6))
			other.awaitUpdate()
			if call := next(other, other.calls); call != stamp(6) {
				t.Errorf("another node greets the thread %s, want %s", call, stamp(6))
			}
		})
	}
}

// TestGreetingsDelayNoAcknowledgement proves that events are acknowledged even if no
// greeting can be shown, and that further greetings are dropped.
func TestGreetingsDelayNoAcknowledgement(t *testing.T) {
	g, inbox := newGreeted(t, slack.ModeHTTP), new(onceInbox)
	g.serve(inbox)
	const queue = 64
	for n := range queue + 5 {
		g.starts(fmt.Sprintf("D%d", n), stamp(1), stamp(2))
	}
	g.run(inbox)
	for range queue {
		next(g, g.calls)
	}
	g.starts("DLAST", stamp(9), stamp(9))
	if call := next(g, g.calls); call != stamp(9) {
		t.Error("a dropped greeting was shown")
	}
}

// TestOnlyAcceptedStartsAreGreeted: not the events of other teams and of other kinds.
func TestOnlyAcceptedStartsAreGreeted(t *testing.T) {
	g, inbox := newGreeted(t, slack.ModeHTTP), new(onceInbox)
	g.serve(inbox)
	g.run(inbox)
	for _, body := range []string{
		`{"type":"event_callback","team_id":"TOTHER","api_app_id":"A0APP","event":{"type":"assistant_thread_started","event_ts":"1.000001",
			"assistant_thread":{"user_id":"U0MARA","channel_id":"D2","thread_ts":"1.000001","context":{}}}}`,
		`{"type":"event_callback","team_id":"T0TEAM","api_app_id":"A0APP","event":{"type":"message","channel":"D3","user":"U0MARA","ts":"1.000001",
			"text":"assistant_thread_started"}}`,
		`{"type":"event_callback","team_id":"T0TEAM","api_app_id":"A0APP","event":{"type":"assistant_thread_context_changed","event_ts":"1.000001",
			"assistant_thread":{"user_id":"U0MARA","channel_id":"D4","thread_ts":"1.000001","context":{"channel_id":"assistant_thread_started"}}}}`,
	} {
		if result, err := g.server.PushRaw(slacktest.EventsAPI, []byte(body)).Wait(g.ctx); err != nil || result.State != slacktest.Acked {
			t.Fatalf("%+v, %v", result, err)
		}
	}
	g.starts("D1", stamp(1), stamp(2))
	g.awaitUpdate()
	if call := next(g, g.calls); call != stamp(1) {
		t.Errorf("the thread %s was greeted", call)
	}
}

// TestAnAssistantThreadGetsItsTitle from the first question in it, once, also without prompts. A thread that no person has started gets
// none, and neither does an app without the scope.
func TestAnAssistantThreadGetsItsTitle(t *testing.T) {
	g, inbox := newGreeted(t, slack.ModeHTTP), new(onceInbox)
	titles := make(chan string, 100)
	g.titles = titles
	g.serve(inbox)
	g.run(inbox)
	says := func(thread, at, text string) {
		t.Helper()
		body := fmt.Appendf(nil, `{"type":"event_callback","team_id":%q,"api_app_id":%q,"event":{"type":"message","channel":"D1","channel_type":"im",
			"user":"U0MARA","text":%q,"ts":%q,"event_ts":%q,"thread_ts":%q}}`, slacktest.Team, slacktest.App, text, at, at, thread)
		if result, err := g.server.PushRaw(slacktest.EventsAPI, body).Wait(g.ctx); err != nil || result.State != slacktest.Acked {
			t.Fatalf("%+v, %v", result, err)
		}
	}
	says(stamp(0), stamp(1), "no assistant thread")
	g.starts("D1", stamp(2), stamp(2))
	says(stamp(2), stamp(3), "<@U0BOT>  when &amp; where do the tomatoes of the greenhouse get their water in this dry year?")
	if got, want := next(g, titles), stamp(2)+" when & where do the tomatoes of the greenhouse get their…"; got != want {
		t.Errorf("the title %q, want %q", got, want)
	}
	says(stamp(2), stamp(4), "and the beans?")
	g.server.Script("assistant.threads.setTitle", slacktest.Fault{Error: "missing_scope"})
	g.starts("D1", stamp(5), stamp(5))
	says(stamp(5), stamp(6), "short")
	if got := next(g, titles); got != stamp(5)+" short" || len(titles) > 0 {
		t.Errorf("the title %q, and %d more", got, len(titles))
	}
}

// stamp returns the ts of an event.
func stamp(second int) string { return fmt.Sprintf("1750000%03d.000100", second) }
