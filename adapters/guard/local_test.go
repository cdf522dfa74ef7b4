package guard_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"parley/adapters/guard"
)

// TestIsLocal tells a program on this machine from other callers.
func TestIsLocal(t *testing.T) {
	for _, c := range []struct {
		peer, header string
		want         bool
	}{
		{"127.0.0.1:1", "", true},
		{"127.8.9.10:1", "", true},
		{"[::1]:1", "", true},
		{"[::ffff:127.0.0.1]:1", "", true},
		{"127.0.0.1:1", "User-Agent", true},
		{"127.0.0.1:1", "Accept-Encoding", true},
		{"127.0.0.1:1", "Authorization", true},
		{"192.0.2.1:1", "", false},
		{"[::ffff:192.0.2.1]:1", "", false},
		{"[fe80::1%eth0]:1", "", false},
		{"@", "", false},
		{"127.0.0.1:1", "Forwarded", false},
		{"127.0.0.1:1", "X-Forwarded-For", false},
		{"127.0.0.1:1", "X-Forwarded-Port", false},
		{"127.0.0.1:1", "X-Real-Ip", false},
		{"127.0.0.1:1", "Cf-Connecting-Ip", false},
		{"127.0.0.1:1", "Cf-Ray", false},
		{"127.0.0.1:1", "True-Client-Ip", false},
		{"127.0.0.1:1", "Fly-Client-Ip", false},
		{"127.0.0.1:1", "X-Original-Uri", false},
		{"127.0.0.1:1", "X-Envoy-Internal", false},
		{"127.0.0.1:1", "Cdn-Loop", false},
		{"127.0.0.1:1", "Via", false},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = c.peer
		if c.header != "" {
			r.Header.Set(c.header, "")
		}
		if got := guard.IsLocal(r); got != c.want {
			t.Errorf("%s with %q: %v", c.peer, c.header, got)
		}
	}
}

func TestIsLocalHost(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "localhost:8484": true, "LOCALHOST": true, "127.0.0.1:8484": true, "[::1]": true, "[::1]:8484": true,
		"": false, "127.0.0.1.example": false, "example:8484": false, "localhost.example:80": false, "192.0.2.1": false, "[2001:db8::1]:80": false,
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		if r.Host = host; guard.IsLocalHost(r) != want {
			t.Errorf("%q is not %v", host, want)
		}
	}
}
