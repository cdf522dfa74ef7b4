package remote_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"parley/adapters/agent"
	"parley/adapters/agent/agui"
	"parley/adapters/agent/anthropic"
	"parley/adapters/agent/remote"
	"parley/adapters/agent/runapi"
	"parley/adapters/agent/webhook"
	"parley/config/secret"
)

const checkedSecret = "canary-4b1f0a77c2-5e9d-83bd21e0"

// checked returns an agent of each kind but openai, whose server is at an address.
func checked(address string) map[string]agent.Checker {
	shared, key := remote.DefaultConfig(), secret.New(checkedSecret)
	return map[string]agent.Checker{
		"anthropic": anthropic.New(anthropic.Config{BaseURL: address, APIKey: key, Model: "claude", MaxTokens: 1, Config: shared}, nil, http.DefaultTransport),
		"agui":      agui.New(agui.Config{URL: address + "/run", Headers: []agui.Header{{Name: "Authorization", Value: secret.New("Bearer " + checkedSecret)}}, Config: shared}, nil, http.DefaultTransport),
		"webhook":   webhook.New(webhook.Config{URL: address + "/run", Secret: key, Config: shared}, nil, http.DefaultTransport, time.Now),
		"run-api":   runapi.New(runapi.Config{BaseURL: address, Token: key, Config: shared}, nil, http.DefaultTransport),
	}
}

// TestCheckOfEachKind answers every request with one status, and compares the key of the finding: "" for
// none, and "?" for no clear answer. No run begins.
func TestCheckOfEachKind(t *testing.T) {
	for status, want := range map[int]map[string]string{
		http.StatusOK:                  {"anthropic": "", "agui": "", "webhook": "", "run-api": ""},
		http.StatusUnauthorized:        {"anthropic": "api_key", "agui": "headers", "webhook": "", "run-api": "token"},
		http.StatusNotFound:            {"anthropic": "model", "agui": "", "webhook": "", "run-api": ""},
		http.StatusMethodNotAllowed:    {"anthropic": "?", "agui": "", "webhook": "", "run-api": "?"},
		http.StatusMovedPermanently:    {"anthropic": "base_url", "agui": "url", "webhook": "url", "run-api": "base_url"},
		http.StatusNotImplemented:      {"anthropic": "?", "agui": "", "webhook": "", "run-api": "?"},
		http.StatusInternalServerError: {"anthropic": "?", "agui": "?", "webhook": "?", "run-api": "?"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost && !strings.HasSuffix(r.URL.Path, "/v1/messages") { // one token of a model
				t.Errorf("%s %s may begin a run", r.Method, r.URL.Path)
			}
			w.WriteHeader(status)
			_, _ = w.Write([]byte(`{"error":{"message":"no ` + checkedSecret + `"}}`)) // to a HEAD it writes nothing
		}))
		for kind, checker := range checked(server.URL) {
			if key := finding(t, checker); key != want[kind] {
				t.Errorf("%s, %d: %q, want %q", kind, status, key, want[kind])
			}
		}
		server.Close()
	}
}

// TestCheckOfNoServer asks an address at which nothing listens, and a server that does not answer in time.
func TestCheckOfNoServer(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for kind, checker := range checked("http://" + silent.Addr().String()) {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if findings, err := checker.Check(ctx); err == nil || len(findings) > 0 {
			t.Errorf("%s of a silent server: %+v, %v", kind, findings, err)
		}
		cancel()
	}
	for kind, checker := range checked("http://127.0.0.1:1") {
		if key := finding(t, checker); key != "base_url" && key != "url" {
			t.Errorf("%s without a server: %q", kind, key)
		}
	}
}

// finding returns the key of what Check finds.
func finding(t *testing.T, checker agent.Checker) string {
	t.Helper()
	findings, err := checker.Check(t.Context())
	switch {
	case err != nil && len(findings) == 0:
		if strings.HasSuffix(err.Error(), ":") {
			t.Errorf("no words follow: %q", err)
		}
		return "?"
	case len(findings) == 0:
		return ""
	}
	if f := findings[0]; !f.Fault || strings.Contains(f.Words, "canary") {
		t.Errorf("%+v", f)
	}
	return findings[0].Key
}
