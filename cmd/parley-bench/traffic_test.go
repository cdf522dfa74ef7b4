package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/adapters/slack/slacktest"
)

// recorder is a daemon that records the events that it gets.
type recorder struct {
	*trial
	mu     sync.Mutex
	events map[string]int // by type, or by subtype if there is one
	tries  []string       // X-Slack-Retry-Num
}

// newRecorder answers each request with status, which gets the request's number, from 1.
func newRecorder(t *testing.T, status func(n int) int) *recorder {
	t.Helper()
	r := &recorder{events: map[string]int{}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		if err != nil {
			t.Error(err)
		}
		var callback struct {
			Event struct{ Type, Subtype string }
		}
		if err := json.Unmarshal(body, &callback); err != nil {
			t.Error(err)
		}
		kind := callback.Event.Type
		if callback.Event.Subtype != "" {
			kind = callback.Event.Subtype
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.events[kind]++
		r.tries = append(r.tries, request.Header.Get("X-Slack-Retry-Num"))
		w.WriteHeader(status(len(r.tries)))
	}))
	t.Cleanup(server.Close)
	b := newTestBench(t)
	api, err := b.startSlack(slacktest.Options{SocketOptions: slacktest.SocketOptions{Repeat: fastRetries()}})
	if err != nil {
		t.Fatal(err)
	}
	transport := newTransport([]*child{{address: strings.TrimPrefix(server.URL, "http://")}})
	api.SetHook(slacktest.Hook{URL: "http://daemon" + hookPath, Secret: signingSecret, Client: &http.Client{Transport: transport}})
	r.trial = &trial{bench: b, api: api, ledger: newLedger()}
	return r
}

// send sends n messages in one channel's thread.
func (r *recorder) send(ctx context.Context, n int, m mix, bare bool) {
	traffic{trial: r.trial, conversations: []*conversation{newConversation(0)}, messages: n, mix: m, bare: bare}.run(ctx, nil)
}

func ok(int) int { return http.StatusOK }

func TestEventIsSentUntilItGetsA200(t *testing.T) {
	r := newRecorder(t, func(n int) int {
		if n < 3 {
			return http.StatusServiceUnavailable
		}
		return http.StatusOK
	})
	r.send(t.Context(), 2, mix{}, true)
	if diff := cmp.Diff([]string{"", "1", "2", ""}, r.tries); diff != "" {
		t.Error(diff)
	}
	for i, want := range []int{3, 1} {
		if m := r.ledger.messages[i]; m.attempts != want || !m.revisions[0].acked.After(m.revisions[0].sent) {
			t.Errorf("m%d: %d attempts, want %d; %+v", i, m.attempts, want, m.revisions)
		}
	}
	if once, again, none := r.ledger.acks(0); len(once) != 1 || len(again) != 1 || none != 0 {
		t.Errorf("%v, %v, %d", once, again, none)
	}
}

func TestFollowUpEvents(t *testing.T) {
	r := newRecorder(t, ok)
	r.send(t.Context(), 10, mix{edits: 1, reacts: 1}, false)
	want := map[string]int{"message": 10, "app_mention": 10, "message_changed": 10, "reaction_added": 10}
	if diff := cmp.Diff(want, r.events); diff != "" {
		t.Error(diff)
	}
	edits := 0
	for _, m := range r.ledger.messages {
		edits += len(m.revisions) - 1
		if last := m.revisions[len(m.revisions)-1]; last.acked.IsZero() || m.deleted != nil {
			t.Errorf("m%d: %+v", m.id, m)
		}
	}
	if edits != 10 {
		t.Errorf("%d edits, want 10", edits)
	}
}

func TestDeletedMessagesAreNotEdited(t *testing.T) {
	r := newRecorder(t, ok)
	r.send(t.Context(), 20, mix{edits: 1, deletes: 1}, false)
	edits, deletes := 0, 0
	for _, m := range r.ledger.messages {
		if m.deleted != nil {
			deletes++
		}
		if m.deleted != nil && m.deleted.acked.IsZero() {
			t.Errorf("m%d: %+v", m.id, m)
		}
		edits += len(m.revisions) - 1
	}
	if r.events["message_deleted"] != deletes || r.events["message_changed"] != edits || edits == 20 || edits == 0 || deletes == 0 {
		t.Errorf("%v, %d edits, %d deletes", r.events, edits, deletes)
	}
}

func TestEventsAreDeliveredMoreThanOnce(t *testing.T) {
	for _, m := range []mix{{twice: 1}, {again: 1}} {
		r := newRecorder(t, ok)
		r.send(t.Context(), 10, m, false)
		if diff := cmp.Diff(map[string]int{"message": 20, "app_mention": 10}, r.events); diff != "" {
			t.Errorf("%+v: %s", m, diff)
		}
	}
}

func TestBareTrafficGoesAroundItsConversations(t *testing.T) {
	r := newRecorder(t, ok)
	traffic{trial: r.trial, conversations: newConversations(6), workers: 2, each: 3, bare: true}.run(t.Context(), nil)
	places := map[place]int{}
	for _, m := range r.ledger.messages {
		places[m.place]++
	}
	if len(places) != 6 || len(r.ledger.messages) != 6 {
		t.Errorf("%d messages in %d places, want 6 in 6", len(r.ledger.messages), len(places))
	}
}

func TestMessageWithoutAnEventNeedsAReply(t *testing.T) {
	b := newTestBench(t)
	api, err := b.startSlack(slacktest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	trial := &trial{bench: b, api: api, ledger: newLedger()}
	c := newRoom(0, 3)
	trial.put(c, "1700000000.000100")
	m, deliveries := trial.say(c, false)
	trial.await(t.Context(), m, time.Time{}, deliveries...)
	if m.attempts != 0 || trial.ledger.due() != 1 || api.Missed() != 2 { // the message and the mention
		t.Errorf("%d attempts, %d due, %d missed", m.attempts, trial.ledger.due(), api.Missed())
	}
	trial.edit(t.Context(), m)
	thread := api.Thread(c.place.channel, trial.ledger.messages[0].ts)
	if len(thread) != 2 || thread[1].TS != m.ts || thread[1].Text != m.text(1) || m.place != c.place {
		t.Errorf("thread %+v", thread)
	}
}

func TestAwaitEndsWithItsContext(t *testing.T) {
	r := newRecorder(t, func(int) int { return http.StatusServiceUnavailable })
	ctx, cancel := context.WithCancel(t.Context())
	m, deliveries := r.say(newRoom(3, 1), true)
	cancel()
	r.await(ctx, m, time.Time{}, deliveries...)
	if m.unaddressed || m.attempts != 0 || r.ledger.due() != 1 {
		t.Errorf("%+v, %d due", m, r.ledger.due())
	}
}

func TestDisconnectsRefuseNothingWithoutASocket(t *testing.T) {
	api, err := newTestBench(t).startSlack(slacktest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range disconnects() {
		if n := kind.do(api); n != 0 {
			t.Errorf("%s hit %d sockets, want 0", kind.name, n)
		}
	}
	response, err := http.PostForm(api.URL()+openMethod, url.Values{"token": {slacktest.AppToken}})
	if err != nil {
		t.Fatal(err)
	}
	if response.Body.Close(); response.StatusCode != http.StatusOK {
		t.Errorf("status %d", response.StatusCode)
	}
}
