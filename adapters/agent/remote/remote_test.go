package remote

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"parley/config/secret"
)

// transport answers each request.
type transport func() *http.Response

func (t transport) RoundTrip(*http.Request) (*http.Response, error) { return t(), nil }

// TestEventsAreBounded checks a stream of more events than a run may have, which are few bytes.
func TestEventsAreBounded(t *testing.T) {
	client := New(DefaultConfig(), "", transport(func() *http.Response {
		body := io.NopCloser(strings.NewReader(strings.Repeat("data: x\n\n", maxEvents+1)))
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: body}
	}))
	request, err := client.Request(t.Context(), "http://agent.test", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	taken := 0
	err = client.Follow(response, NewAnswer("run", 1, nil), "an end", func(Event) error { taken++; return nil })
	if fault, ok := errors.AsType[*Error](err); !ok || !fault.Flood() || taken != maxEvents {
		t.Errorf("%d events, %v", taken, err)
	}
}

// TestCleanRemovesSecrets checks that the words of a secret are removed, and that a placeholder, such
// as a key of one letter for a server without keys, leaves the text readable.
func TestCleanRemovesSecrets(t *testing.T) {
	client := New(DefaultConfig(), "https://h/v1/api/hook-a%2Fb?key=k%20ey&n=1&b4re", nil, secret.New("x"), secret.New("Bearer s3cr"))
	for given, want := range map[string]string{
		"the key s3cr exceeds the context":       "the key [secret] exceeds the context",
		"no route /v1/api/hook-a%2Fb?key=k%20ey": "no route /v1/api/[secret]?key=[secret]",
		"no route hook-a/b for k ey, n=1, b4re":  "no route [secret] for [secret], n=1, [secret]",
	} {
		if got := client.Clean(given); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
