package payload_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"parley/adapters"
	"parley/adapters/adaptertest"
	"parley/adapters/slack/payload"
	"parley/ingest/event"
)

// assistant is one user's conversation with the app.
type assistant struct {
	t         *testing.T
	directory fakeDirectory
}

func newAssistant(t *testing.T) assistant {
	return assistant{t, fakeDirectory{self: us, state: adaptertest.NewState()}}
}

func stamp(second int) string { return fmt.Sprintf("1750000%03d.000100", second) }

// views reports that the user views a channel beside a thread since a second. It returns
// whether that is ignored, and why.
func (a assistant) views(thread, second int, channel string) (ignored string) {
	a.t.Helper()
	return normalized(a.t, viewEvent("assistant_thread_context_changed", "D1", stamp(thread), stamp(second), channel), a.directory).Ignored
}

// viewEvent returns an event of an assistant thread.
func viewEvent(kind, conversation, thread, at, channel string) object {
	return eventCallback(object{"type": kind, "event_ts": at, "assistant_thread": object{
		"user_id": "UMARA0001", "channel_id": conversation, "thread_ts": thread, "context": object{"channel_id": channel},
	}})
}

// says returns the channel that a message of the user carries.
func (a assistant) says(thread, second int) (viewed string) {
	a.t.Helper()
	return viewedIn(messageOf(a.t, eventCallback(a.message(thread, second, "hi")), a.directory))
}

func (a assistant) message(thread, second int, text string) object {
	return messageEvent(text, object{"channel": "D1", "channel_type": "im", "thread_ts": stamp(thread), "ts": stamp(second)})
}

func viewedIn(m *event.Message) string {
	for _, extra := range m.Metadata.Extra {
		if extra.Key == "slack_context_channel_id" {
			return string(extra.Value)
		}
	}
	return ""
}

func TestViewedChannelIsInLaterMessagesOfThread(t *testing.T) {
	a := newAssistant(t)
	if got := a.says(1, 2); got != "" {
		t.Errorf("before the first view: %s", got)
	}
	for _, ignored := range []string{a.views(1, 3, "C7"), a.views(1, 5, "C8")} {
		if ignored != "" {
			t.Errorf("a new view is ignored: %s", ignored)
		}
	}
	for second, want := range map[int]string{2: "", 3: `"C7"`, 4: `"C7"`, 5: `"C8"`, 6: `"C8"`} {
		if got := a.says(1, second); got != want {
			t.Errorf("at second %d: %s, want %s", second, got, want)
		}
	}
	if got := a.says(2, 6); got != "" {
		t.Errorf("in another thread: %s", got)
	}
	if ignored := a.views(1, 7, ""); ignored != "" || a.says(1, 8) != "" {
		t.Errorf("after the user left the channel: ignored %q, %s", ignored, a.says(1, 8))
	}
	outside := messageEvent("hi", object{"channel": "D1", "channel_type": "im", "ts": stamp(8)})
	if got := viewedIn(messageOf(t, eventCallback(outside), a.directory)); got != "" {
		t.Errorf("outside of any thread: %s", got)
	}
}

func TestEditKeepsViewedChannel(t *testing.T) {
	a := newAssistant(t)
	a.views(1, 2, "C7")
	a.views(1, 4, "C8")
	state := a.message(1, 3, "hi!")
	state["edited"] = object{"user": "UMARA0001", "ts": stamp(5)}
	edit := object{"type": "message", "subtype": "message_changed", "channel": "D1", "channel_type": "im", "ts": stamp(5), "message": state}
	if got := viewedIn(messageOf(t, eventCallback(edit), a.directory)); got != `"C7"` {
		t.Errorf("the edit has the channel %s", got)
	}
}

func TestNewestViewDecides(t *testing.T) {
	a := newAssistant(t)
	for _, step := range []struct {
		second  int
		channel string
		want    string
	}{
		{5, "C7", ""},
		{4, "C8", event.ReasonNoChange}, // an older event
		{6, "C7", event.ReasonNoChange}, // the same channel
		{8, "C9", ""},
		{8, "C9", ""}, // the same event, after a crash
	} {
		if got := a.views(1, step.second, step.channel); got != step.want {
			t.Errorf("%s at second %d: ignored %q, want %q", step.channel, step.second, got, step.want)
		}
	}
	if got := a.says(1, 9); got != `"C9"` {
		t.Errorf("the message has the channel %s", got)
	}
}

// TestViewsAreBounded proves that the state of a conversation keeps its newest views.
func TestViewsAreBounded(t *testing.T) {
	a := newAssistant(t)
	for thread := range 300 {
		a.views(thread, thread, "C7")
	}
	for thread, want := range map[int]string{0: "", 199: "", 200: `"C7"`, 299: `"C7"`} {
		if got := a.says(thread, 400); got != want {
			t.Errorf("in thread %d: %s, want %s", thread, got, want)
		}
	}
	value, err := a.directory.state.Get(t.Context(), "viewed/D1")
	if err != nil || len(value) > 16<<10 {
		t.Errorf("the value has %d bytes, %v", len(value), err)
	}
}

// brokenState is a state that always fails.
type brokenState struct{ adapters.State }

var errBroken = errors.New("the disk is gone")

func (brokenState) Get(context.Context, string) (string, error) { return "", errBroken }

func (brokenState) Update(context.Context, string, func(string) string) error { return errBroken }

// brokenDirectory is a directory whose state always fails.
type brokenDirectory struct{ fakeDirectory }

func (brokenDirectory) State() adapters.State { return brokenState{} }

func TestNormalizeReturnsErrorsOfState(t *testing.T) {
	a := newAssistant(t)
	for name, body := range map[string]object{
		"view": viewEvent("assistant_thread_started", "D1", stamp(1), stamp(2), "C7"), "message": eventCallback(a.message(1, 3, "hi")),
	} {
		if _, err := (payload.Normalizer{}).Normalize(t.Context(), envelopeOf(t, body), brokenDirectory{a.directory}); !errors.Is(err, errBroken) {
			t.Errorf("%s: error %v, want %v", name, err, errBroken)
		}
	}
}
