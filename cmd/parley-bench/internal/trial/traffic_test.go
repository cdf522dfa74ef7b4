package trial

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/adapters/slack/slacktest"
	"parley/cmd/parley-bench/internal/ledger"
	"parley/cmd/parley-bench/internal/rig"
	"parley/cmd/parley-bench/internal/rigtest"
)

// recorder is a daemon that records the events that it gets.
type recorder struct {
	*Trial
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
	b := rigtest.NewBench(t)
	api, err := startSlack(b, slacktest.Options{SocketOptions: slacktest.SocketOptions{Repeat: fastRetries()}})
	if err != nil {
		t.Fatal(err)
	}
	transport := rig.NewTransport([]*rig.Child{{Address: strings.TrimPrefix(server.URL, "http://")}})
	api.SetHook(slacktest.Hook{URL: "http://daemon" + rig.HookPath, Secret: rig.SigningSecret, Client: &http.Client{Transport: transport}})
	r.Trial = &Trial{Bench: b, API: api, Ledger: ledger.New()}
	return r
}

// send sends n messages in one channel's thread.
func (r *recorder) send(ctx context.Context, n int, m Mix, bare bool) {
	Traffic{Trial: r.Trial, Conversations: []*ledger.Conversation{ledger.NewRoom(0, ledger.DefaultChannels)}, Messages: n, Mix: m, Bare: bare}.Run(ctx, nil)
}

func ok(int) int { return http.StatusOK }

func TestEventIsSentUntilItGetsA200(t *testing.T) {
	r := newRecorder(t, func(n int) int {
		if n < 3 {
			return http.StatusServiceUnavailable
		}
		return http.StatusOK
	})
	r.send(t.Context(), 2, Mix{}, true)
	if diff := cmp.Diff([]string{"", "1", "2", ""}, r.tries); diff != "" {
		t.Error(diff)
	}
	for i, want := range []int{3, 1} {
		if m := r.Ledger.Messages[i]; m.Attempts != want || !m.Revisions[0].Acked.After(m.Revisions[0].Sent) {
			t.Errorf("m%d: %d attempts, want %d; %+v", i, m.Attempts, want, m.Revisions)
		}
	}
	if once, again, none := r.Ledger.Acks(0); len(once) != 1 || len(again) != 1 || none != 0 {
		t.Errorf("%v, %v, %d", once, again, none)
	}
}

func TestFollowUpEvents(t *testing.T) {
	r := newRecorder(t, ok)
	r.send(t.Context(), 10, Mix{Edits: 1, Reacts: 1}, false)
	want := map[string]int{"message": 10, "app_mention": 10, "message_changed": 10, "reaction_added": 10}
	if diff := cmp.Diff(want, r.events); diff != "" {
		t.Error(diff)
	}
	edits := 0
	for _, m := range r.Ledger.Messages {
		edits += len(m.Revisions) - 1
		if last := m.Revisions[len(m.Revisions)-1]; last.Acked.IsZero() || m.Deleted != nil {
			t.Errorf("m%d: %+v", m.ID, m)
		}
	}
	if edits != 10 {
		t.Errorf("%d edits, want 10", edits)
	}
}

func TestDeletedMessagesAreNotEdited(t *testing.T) {
	r := newRecorder(t, ok)
	r.send(t.Context(), 20, Mix{Edits: 1, Deletes: 1}, false)
	edits, deletes := 0, 0
	for _, m := range r.Ledger.Messages {
		if m.Deleted != nil {
			deletes++
		}
		if m.Deleted != nil && m.Deleted.Acked.IsZero() {
			t.Errorf("m%d: %+v", m.ID, m)
		}
		edits += len(m.Revisions) - 1
	}
	if r.events["message_deleted"] != deletes || r.events["message_changed"] != edits || edits == 20 || edits == 0 || deletes == 0 {
		t.Errorf("%v, %d edits, %d deletes", r.events, edits, deletes)
	}
}

func TestEventsAreDeliveredMoreThanOnce(t *testing.T) {
	for _, m := range []Mix{{Twice: 1}, {Again: 1}} {
		r := newRecorder(t, ok)
		r.send(t.Context(), 10, m, false)
		if diff := cmp.Diff(map[string]int{"message": 20, "app_mention": 10}, r.events); diff != "" {
			t.Errorf("%+v: %s", m, diff)
		}
	}
}

func TestBareTrafficGoesAroundItsConversations(t *testing.T) {
	r := newRecorder(t, ok)
	Traffic{Trial: r.Trial, Conversations: ledger.NewConversations(6), Workers: 2, Each: 3, Bare: true}.Run(t.Context(), nil)
	places := map[ledger.Place]int{}
	for _, m := range r.Ledger.Messages {
		places[m.Place]++
	}
	if len(places) != 6 || len(r.Ledger.Messages) != 6 {
		t.Errorf("%d messages in %d places, want 6 in 6", len(r.Ledger.Messages), len(places))
	}
}

func TestMessageWithoutAnEventNeedsAReply(t *testing.T) {
	b := rigtest.NewBench(t)
	api, err := startSlack(b, slacktest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	trial := &Trial{Bench: b, API: api, Ledger: ledger.New()}
	c := ledger.NewRoom(0, 3)
	trial.Put(c, "1700000000.000100")
	m, deliveries := trial.Say(c, false)
	trial.Await(t.Context(), m, time.Time{}, deliveries...)
	if m.Attempts != 0 || trial.Ledger.Due() != 1 || api.Missed() != 2 { // the message and the mention
		t.Errorf("%d attempts, %d due, %d missed", m.Attempts, trial.Ledger.Due(), api.Missed())
	}
	trial.Edit(t.Context(), m)
	thread := api.Thread(c.Place.Channel, trial.Ledger.Messages[0].TS)
	if len(thread) != 2 || thread[1].TS != m.TS || thread[1].Text != m.Text(1) || m.Place != c.Place {
		t.Errorf("thread %+v", thread)
	}
}

func TestAwaitEndsWithItsContext(t *testing.T) {
	r := newRecorder(t, func(int) int { return http.StatusServiceUnavailable })
	ctx, cancel := context.WithCancel(t.Context())
	m, deliveries := r.Say(ledger.NewRoom(3, 1), true)
	cancel()
	r.Await(ctx, m, time.Time{}, deliveries...)
	if m.Unaddressed || m.Attempts != 0 || r.Ledger.Due() != 1 {
		t.Errorf("%+v, %d due", m, r.Ledger.Due())
	}
}
