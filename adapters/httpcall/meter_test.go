package httpcall

import (
	"net/http/httptest"
	"testing"
)

// TestRouteHasNoIDs checks that the name of a request is from a fixed list, whatever ids its path has.
func TestRouteHasNoIDs(t *testing.T) {
	words := []string{"messages", "reactions"}
	for target, want := range map[string]string{
		"/api/v10/channels/123/messages":                     "GET messages",
		"/api/v10/channels/123/messages/456/reactions/x/@me": "GET reactions",
		"/api/v10/channels/123/messages/456?token=secret":    "GET messages",
		"/api/v10/users/42":                                  Other,
	} {
		if got := Route(httptest.NewRequest("GET", target, nil), words); got != want {
			t.Errorf("%s is %q, want %q", target, got, want)
		}
	}
}
