package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// visits are the nodes that heard of an event, in order.
type visits struct {
	mu    sync.Mutex
	nodes []int
}

func (v *visits) add(node int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.nodes = append(v.nodes, node)
}

func (v *visits) are(t *testing.T, want []int) {
	t.Helper()
	v.mu.Lock()
	defer v.mu.Unlock()
	if diff := cmp.Diff(want, v.nodes); diff != "" {
		t.Errorf("nodes: %s", diff)
	}
}

// backends are servers that answer with these statuses, in the balancer's order;
// 0 is a node that refuses connections.
func backends(t *testing.T, hits *visits, statuses ...int) *balancer {
	var addresses []string
	for n, status := range statuses {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			hits.add(n)
			w.WriteHeader(status)
		}))
		if status == 0 {
			server.Close()
		} else {
			t.Cleanup(server.Close)
		}
		addresses = append(addresses, strings.TrimPrefix(server.URL, "http://"))
	}
	return newBalancer(addresses...)
}

func TestEventsGoAroundTheNodes(t *testing.T) {
	for name, c := range map[string]struct {
		first    int
		statuses []int
		want     []int // status of each post
		hits     []int // who heard of it
	}{
		"all well":          {1, []int{200, 200, 200}, []int{200, 200, 200, 200}, []int{1, 2, 0, 1}},
		"one is down":       {0, []int{200, 0, 200}, []int{200, 200, 200}, []int{0, 2, 0}},
		"one says 503":      {0, []int{503, 200}, []int{200, 200}, []int{0, 1, 0, 1}},
		"all say 503":       {0, []int{503, 503}, []int{503}, []int{0, 1}},
		"a 500 is no 503":   {0, []int{500, 200}, []int{500, 200}, []int{0, 1}},
		"a single node":     {7, []int{200}, []int{200, 200}, []int{0, 0}},
		"all of them down":  {0, []int{0, 0}, []int{0}, nil},
		"one down, one 503": {0, []int{0, 503}, []int{503}, []int{1}},
	} {
		t.Run(name, func(t *testing.T) {
			var hits visits
			var got []int
			r := backends(t, &hits, c.statuses...).route(c.first)
			defer r.close()
			for range c.want {
				status, _ := r.post([]byte(`{}`), 0, time.Now())
				got = append(got, status)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("statuses: %s", diff)
			}
			hits.are(t, c.hits)
		})
	}
}

func TestANodeThatHangsIsLeftAlone(t *testing.T) {
	var hits visits
	b := backends(t, &hits, 200, 200)
	first, other := b.route(0), b.route(0)
	defer first.close()
	defer other.close()
	now := time.Now()
	b.backends[0].back.Store(now.Add(outFor).UnixNano())
	for _, r := range []*route{first, other, first} {
		if status, err := r.post([]byte(`{}`), 0, now); status != http.StatusOK || err != nil {
			t.Fatal(status, err)
		}
	}
	if _, err := first.post([]byte(`{}`), 0, now.Add(outFor)); err != nil {
		t.Fatal(err)
	}
	hits.are(t, []int{1, 1, 1, 0})
}

func TestHangingIsTold(t *testing.T) {
	if !hangs(&net.OpError{Op: "read", Err: timeout{}}) || hangs(net.ErrClosed) || hangs(nil) {
		t.Error("a time that is over must be told from other errors")
	}
}

// timeout is the error of a deadline.
type timeout struct{}

func (timeout) Error() string   { return "i/o timeout" }
func (timeout) Timeout() bool   { return true }
func (timeout) Temporary() bool { return true }
