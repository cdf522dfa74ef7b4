package guard_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"parley/adapters/guard"
)

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
