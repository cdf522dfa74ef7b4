package operator_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"parley/cmd/parley/internal/operator"
)

// call sends a request to a handler, with a token and further headers, and returns the status and the
// body.
func call(h http.Handler, method, path, token string, headers ...string) (int, string) {
	r := httptest.NewRequest(method, "http://localhost"+operator.Prefix+path, nil)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	body, _ := io.ReadAll(w.Result().Body)
	return w.Code, string(body)
}

// TestTheListenerAdmitsOperatorsByTheirRoles. Each refusal is counted.
func TestTheListenerAdmitsOperatorsByTheirRoles(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.running()
	s.Live.Reload = func(context.Context) (operator.Reloaded, error) { return operator.Reloaded{Applied: true}, nil }
	h := s.Remote(true)
	for _, c := range []struct {
		method, path, token, host string
		status                    int
		reason                    string
	}{
		{"GET", "audit", viewerToken, "", 200, ""},
		{"GET", "audit", readerToken, "127.0.0.1:8486", 200, ""},
		{"POST", "reload", operatorToken, "", 200, ""},
		{"POST", "reload", readerToken, "", 403, "role"},
		{"POST", "reload", viewerToken, "", 403, "role"},
		{"GET", "audit", "", "", 401, "no-operator-token"},
		{"GET", "audit", "wrong", "", 401, "no-operator-token"},
		{"GET", "nothing", "wrong", "", 401, "no-operator-token"},
		{"GET", "audit", viewerToken, "rebound.example", 403, "foreign-host"},
		{"POST", "reload", operatorToken, "rebound.example:80", 403, "foreign-host"},
		{"GET", "nothing", viewerToken, "", 404, "no-such-route"},
		{"DELETE", "audit", viewerToken, "", 404, "no-such-route"},
	} {
		var headers []string
		if c.host != "" {
			headers = []string{"Host", c.host}
		}
		status, body := call(h, c.method, c.path, c.token, headers...)
		var want []string
		if c.reason != "" {
			want = []string{c.reason}
		}
		if got := s.taken(); status != c.status || !slices.Equal(got, want) || c.reason != "" && !strings.Contains(body, `"code":"`+c.reason+`"`) {
			t.Errorf("%s %s: %d %s, counted %q", c.method, c.path, status, body, got)
		}
	}
	s.config.Operators = nil // a reload removes them
	if status, _ := call(h, "GET", "audit", viewerToken); status != 401 {
		t.Errorf("a removed operator: %d", status)
	}
	if status, _ := call(s.Remote(false), "GET", "audit", ""); status != 401 {
		t.Errorf("no operators: %d", status)
	}
}

// TestAWriteIsAuditedAndDoneOnce for its key.
func TestAWriteIsAuditedAndDoneOnce(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.running()
	done, fails := 0, false
	s.Live.Reload = func(context.Context) (operator.Reloaded, error) {
		if fails {
			return operator.Reloaded{}, operator.Fail(http.StatusServiceUnavailable, "stopping", "the daemon stops")
		}
		done++
		return operator.Reloaded{Applied: true, Changed: []string{"log.level"}}, nil
	}
	h := s.Local()
	first, body := call(h, "POST", "reload", "", "Idempotency-Key", "k1", "X-Parley-User", "mara")
	again, same := call(h, "POST", "reload", "", "Idempotency-Key", "k1", "X-Parley-User", "mara")
	if first != 200 || again != 200 || body != same || done != 1 {
		t.Errorf("%d %s, %d %s: done %d times", first, body, again, same, done)
	}
	fails = true
	if status, body := call(h, "POST", "reload", "", "X-Parley-User", "no/name"); status != 503 || !strings.Contains(body, "stopping") {
		t.Errorf("%d %s", status, body)
	}
	if status, _ := call(h, "POST", "reload", "", "Idempotency-Key", strings.Repeat("k", 201)); status != 400 {
		t.Errorf("a long key: %d", status)
	}
	list, err := s.Audit(t.Context(), operator.Page{Limit: 10})
	if err != nil || len(list.Items) != 2 || list.Next != nil {
		t.Fatalf("%v %+v", err, list)
	}
	failed, reloaded := list.Items[0], list.Items[1]
	if failed.Who != "local" || failed.Error != "the daemon stops" || failed.Result != nil {
		t.Errorf("%+v", failed)
	}
	if reloaded.Who != "local:mara" || reloaded.What != "reload" || !strings.Contains(string(reloaded.Result), "log.level") {
		t.Errorf("%+v", reloaded)
	}
}

// TestStreamsNeedADaemon, as other operations on it do.
func TestStreamsNeedADaemon(t *testing.T) {
	t.Parallel()
	s := newService(t)
	for _, path := range []string{"GET log", "GET steps", "POST reload"} {
		method, path, _ := strings.Cut(path, " ")
		if status, body := call(s.Local(), method, path, ""); status != 409 || !strings.Contains(body, "parley run") {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
}
