package guard_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"parley/adapters/guard"
)

// fail reports a wrong token from an address, and returns the status.
func fail(g *guard.Guard, address string) int {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = address
	return g.Unauthorized(httptest.NewRecorder(), r, "unauthorized").Status
}

// TestFailuresAreThrottled lets addresses fail: the 21st failure within a minute gets 429.
func TestFailuresAreThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, addresses := range map[string][2]string{
			"one address":                    {"192.0.2.1:1000", "192.0.2.1:2000"},
			"one IPv6 network":               {"[2001:db8:1:2::1]:1000", "[2001:db8:1:2:3:4:5:6]:2000"},
			"an IPv4 address in an IPv6 one": {"[::ffff:192.0.2.9]:1", "192.0.2.9:1"},
			"no address":                     {"@", "@"},
		} {
			g := guard.New(func(string) {})
			for i := range 25 {
				want := http.StatusUnauthorized
				if i >= 20 {
					want = http.StatusTooManyRequests
				}
				if got := fail(g, addresses[i%2]); got != want {
					t.Errorf("%s: failure %d gets %d", name, i+1, got)
				}
				<-time.After(time.Second)
			}
			for _, other := range []string{"192.0.2.2:1000", "[2001:db8:1:3::1]:1000"} {
				if got := fail(g, other); got != http.StatusUnauthorized {
					t.Errorf("%s: another address gets %d", name, got)
				}
			}
			<-time.After(time.Minute)
			if got := fail(g, addresses[0]); got != http.StatusUnauthorized {
				t.Errorf("%s: a minute later: %d", name, got)
			}
		}
	})
}

// TestThrottleIsBounded lets more addresses fail than are counted.
func TestThrottleIsBounded(t *testing.T) {
	g := guard.New(func(string) {})
	for i := range 3 * guard.MaxAddresses {
		fail(g, fmt.Sprintf("198.51.%d.%d:1", i/256, i%256))
	}
	if n := g.Addresses(); n != guard.MaxAddresses {
		t.Errorf("%d addresses", n)
	}
}

// TestUnauthorizedEndsTheConnection refuses requests before their bodies have come.
func TestUnauthorizedEndsTheConnection(t *testing.T) {
	t.Parallel()
	d := open(t, func(g *guard.Guard, w http.ResponseWriter, r *http.Request) {
		g.Refuse(w, g.Unauthorized(w, r, "no-signature"))
	})
	for _, size := range []int{10, limit} {
		c := d.dial().post(size, "half")
		d.check("a request without its body", c.answer(), http.StatusUnauthorized)
		if !c.ended() {
			t.Error("the connection is open")
		}
	}
}
