package rig

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// visits are the daemons that got a request, in order.
type visits struct {
	mu    sync.Mutex
	nodes []int
}

func (v *visits) add(node int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.nodes = append(v.nodes, node)
}

// newTestTransport returns a transport to servers that answer with these statuses. The
// status 0 is a daemon that refuses connections. The first request goes to the first
// server.
func newTestTransport(t *testing.T, visits *visits, statuses ...int) *Transport {
	t.Helper()
	var programs []*Child
	for n, status := range statuses {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			visits.add(n)
			w.WriteHeader(status)
		}))
		if status == 0 {
			server.Close()
		} else {
			t.Cleanup(server.Close)
		}
		programs = append(programs, &Child{Address: strings.TrimPrefix(server.URL, "http://")})
	}
	transport := NewTransport(programs)
	transport.next.Store(-1)
	t.Cleanup(transport.base.CloseIdleConnections)
	return transport
}

// post sends a request, and returns the status, or 0 for an error.
func post(t *testing.T, transport *Transport) int {
	t.Helper()
	response, err := (&http.Client{Transport: transport}).Post("http://daemon/", "application/json", strings.NewReader(`{}`))
	if err != nil {
		return 0
	}
	if err := response.Body.Close(); err != nil {
		t.Error(err)
	}
	return response.StatusCode
}

func TestTransportGoesAroundTheDaemons(t *testing.T) {
	for name, c := range map[string]struct {
		statuses []int // of the daemons
		want     []int // of the requests
		visits   []int
	}{
		"all answer 200":          {[]int{200, 200, 200}, []int{200, 200, 200, 200}, []int{0, 1, 2, 0}},
		"one refuses connections": {[]int{200, 0, 200}, []int{200, 0, 200}, []int{0, 2}},
		"one answers 503":         {[]int{503, 200}, []int{503, 200}, []int{0, 1}},
		"a single daemon":         {[]int{200}, []int{200, 200}, []int{0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			var visits visits
			var got []int
			transport := newTestTransport(t, &visits, c.statuses...)
			for range c.want {
				got = append(got, post(t, transport))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("statuses: %s", diff)
			}
			if diff := cmp.Diff(c.visits, visits.nodes); diff != "" {
				t.Errorf("visits: %s", diff)
			}
		})
	}
}

func TestTransportSkipsADaemonThatHangs(t *testing.T) {
	var visits visits
	transport := newTestTransport(t, &visits, 200, 200)
	hung := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(hung.Close)
	transport.nodes[0].address = strings.TrimPrefix(hung.URL, "http://")
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://daemon/", nil)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	if response, err := transport.RoundTrip(request); err == nil {
		response.Body.Close()
		t.Fatal("an answer of a daemon that hangs")
	}
	for range 3 {
		post(t, transport)
	}
	if diff := cmp.Diff([]int{1, 1, 1}, visits.nodes); diff != "" {
		t.Error(diff)
	}
	if n := transport.pick(now.Add(2 * hangPenalty)); n != transport.nodes[0] {
		t.Error("the daemon gets no requests after its penalty")
	}
}

func TestTransportKeepsAttempts(t *testing.T) {
	var visits visits
	transport := newTestTransport(t, &visits, 503)
	begun := time.Now()
	post(t, transport)
	if left := transport.Since(time.Now()); len(left) != 0 {
		t.Errorf("attempts of the future: %+v", left)
	}
	got := transport.Since(begun)
	if len(got) != 1 || got[0].Ended.Before(got[0].Sent) {
		t.Errorf("attempts %+v", got)
	}
}
