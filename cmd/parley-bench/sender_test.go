package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// recorder is a daemon that only writes down what it is told.
type recorder struct {
	*httptest.Server
	mu     sync.Mutex
	events []string // type, or subtype where there is one
	tries  []string // X-Slack-Retry-Num
}

// record answers each call with what status says of its number, from 1.
func record(t *testing.T, status func(n int) int) *recorder {
	r := &recorder{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
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
		r.events = append(r.events, kind)
		r.tries = append(r.tries, request.Header.Get("X-Slack-Retry-Num"))
		w.WriteHeader(status(len(r.events)))
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *recorder) address() string { return strings.TrimPrefix(r.URL, "http://") }

// send lets one sender say n messages in one channel's thread.
func (r *recorder) send(t *testing.T, n int, m mix) *ledger {
	t.Helper()
	l := newLedger(echoed)
	s := newSender(l, newBalancer(r.address()), []*conversation{newConversation(0)}, m, newPacer(1e6), 1, 1)
	left := n
	s.run(t.Context(), make(chan struct{}), func() bool { left--; return left >= 0 })
	return l
}

func (r *recorder) count() map[string]int {
	counts := map[string]int{}
	for _, kind := range r.events {
		counts[kind]++
	}
	return counts
}

func TestWhatGotNo200IsSentAgain(t *testing.T) {
	r := record(t, func(n int) int {
		if n < 3 {
			return http.StatusServiceUnavailable
		}
		return http.StatusOK
	})
	l := r.send(t, 2, mix{})
	if diff := cmp.Diff([]string{"", "1", "2", ""}, r.tries); diff != "" {
		t.Error(diff)
	}
	for _, m := range l.messages {
		if s := m.revisions[0]; s.acked.IsZero() || !s.acked.After(s.sent) {
			t.Errorf("m%d: %+v", m.id, s)
		}
	}
}

func TestAMessageHasItsCompany(t *testing.T) {
	r := record(t, func(int) int { return http.StatusOK })
	l := r.send(t, 10, mix{pairs: 1, edits: 1, reacts: 1})
	want := map[string]int{"message": 10, "app_mention": 10, "message_changed": 10, "reaction_added": 10}
	if diff := cmp.Diff(want, r.count()); diff != "" {
		t.Error(diff)
	}
	for _, m := range l.messages {
		if len(m.revisions) != 2 || m.revisions[1].acked.IsZero() || m.deleted != nil {
			t.Errorf("m%d: %+v", m.id, m)
		}
	}
}

func TestWhatIsDeletedIsNotEdited(t *testing.T) {
	r := record(t, func(int) int { return http.StatusOK })
	l := r.send(t, 20, mix{edits: 1, deletes: 1})
	edits := 0
	for _, m := range l.messages {
		if m.deleted == nil || m.deleted.acked.IsZero() {
			t.Errorf("m%d: %+v", m.id, m)
		}
		edits += len(m.revisions) - 1
	}
	if counts := r.count(); counts["message_deleted"] != 20 || counts["message_changed"] != edits || edits == 20 || edits == 0 {
		t.Errorf("%v, %d edits", counts, edits)
	}
}

func TestEventsAreDeliveredMoreThanOnce(t *testing.T) {
	r := record(t, func(int) int { return http.StatusOK })
	r.send(t, 10, mix{twice: 1})
	if diff := cmp.Diff(map[string]int{"message": 20}, r.count()); diff != "" {
		t.Error(diff)
	}
	r = record(t, func(int) int { return http.StatusOK })
	r.send(t, 10, mix{again: 1})
	if diff := cmp.Diff(map[string]int{"message": 20}, r.count()); diff != "" {
		t.Error(diff)
	}
}
