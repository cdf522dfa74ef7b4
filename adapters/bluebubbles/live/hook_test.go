package live_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"parley/adapters/bluebubbles/internal/testapp"
)

// post posts a body and returns the status.
func post(t *testing.T, url, body string) int {
	t.Helper()
	response, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode
}

// TestHookSecret checks that only the whole secret opens the hook, before the body is read, and
// that a large body is refused.
func TestHookSecret(t *testing.T) {
	n := testapp.NewNode(t, testapp.Silent)
	n.Start()
	for path, want := range map[string]int{
		"": 401, "/wrong": 401, "/" + testapp.CanaryWebhook[:20]: 401, "/" + testapp.CanaryWebhook + "x": 401, "/" + testapp.CanaryWebhook: 200,
	} {
		if status := post(t, n.Hook.URL+path, `{"type":"hello-world","data":null}`); status != want {
			t.Errorf("%q: status %d, want %d", path, status, want)
		}
	}
	if status := post(t, n.Hook.URL+"/"+testapp.CanaryWebhook, strings.Repeat(" ", 1<<20+1)); status != http.StatusRequestEntityTooLarge {
		t.Errorf("a large body: status %d", status)
	}
	if status := post(t, n.Hook.URL+"/wrong", strings.Repeat(" ", 1<<20+1)); status != http.StatusUnauthorized {
		t.Errorf("a large body with a wrong secret: status %d", status)
	}
}
