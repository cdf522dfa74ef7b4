package operator_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/adapters/web/exchange"
	"parley/cmd/parley/internal/operator"
	"parley/config"
	"parley/config/secret"
)

// records returns the records in a stream that has ended.
func records(t *testing.T, h http.Handler, query string) (list []operator.Record) {
	t.Helper()
	status, body := call(h, "GET", "log?follow=false"+query, "")
	if status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	for line := range strings.Lines(body) {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			var r operator.Record
			if err := json.Unmarshal([]byte(data), &r); err != nil {
				t.Fatal(err)
			}
			list = append(list, r)
		}
	}
	return list
}

// TestTheLogIsKept with its attributes, and without secrets. Below info, only what the logger itself
// shows is kept.
func TestTheLogIsKept(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.running()
	s.Live.Log, s.Live.Streams = new(operator.Log), exchange.NewStreams()
	var shown bytes.Buffer
	log := slog.New(s.Live.Log.Handler(slog.NewJSONHandler(&shown, &slog.HandlerOptions{Level: slog.LevelWarn})))
	log.Debug("nobody asked")
	log.With("workspace", "acme").Info("a run is answered", "took", 1500*time.Millisecond, "token", secret.New("canary-log-5c1e"))
	log.WithGroup("g").With("a", 1).Error("it failed", "err", errors.New("no route"))
	if n := strings.Count(shown.String(), "\n"); n != 1 {
		t.Errorf("%d records were shown", n)
	}
	all := records(t, s.Local(), "")
	if len(all) != 2 || all[0].Level != "info" || all[0].Attrs["workspace"] != "acme" || all[0].Attrs["took"] != "1.5s" || all[0].Attrs["token"] != "[secret]" {
		t.Errorf("%+v", all)
	}
	if all[1].Attrs["g.a"] != "1" || all[1].Attrs["g.err"] != "no route" {
		t.Errorf("%+v", all[1])
	}
	message := func(r operator.Record) string { return r.Message }
	for query, want := range map[string][]string{
		"&level=error": {"it failed"}, "&workspace=acme": {"a run is answered"}, "&workspace=other": nil, "&after=1": {"it failed"},
	} {
		var got []string
		for _, r := range records(t, s.Local(), query) {
			got = append(got, message(r))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q", query, got)
		}
	}
	for _, query := range []string{"&level=loud", "&colour=red", "&after=x"} {
		if status, _ := call(s.Local(), "GET", "log?follow=false"+query, ""); status != http.StatusBadRequest {
			t.Errorf("%s: %d", query, status)
		}
	}
	for range 2500 {
		log.Info("another")
	}
	if all = records(t, s.Local(), ""); len(all) != 2000 || all[0].Message != "another" {
		t.Errorf("%d records are kept", len(all))
	}
}

// TestAStreamEndsWithItsToken replaces the token, with which the same operator has the same role, and takes
// the role away: an open stream tells nothing that comes later.
func TestAStreamEndsWithItsToken(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*config.Operator){
		"token": func(o *config.Operator) { o.Token = secret.New("another-operator-token-3f9a11") },
		"role":  func(o *config.Operator) { o.Role = config.RoleReader },
	} {
		s := newService(t)
		s.running()
		s.Live.Log, s.Live.Streams = new(operator.Log), exchange.NewStreams()
		var current atomic.Pointer[config.Config]
		current.Store(s.config)
		s.Config = current.Load
		server := httptest.NewServer(s.Remote(true))
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+operator.Prefix+"log", nil)
		r.Header.Set("Authorization", "Bearer "+operatorToken)
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		log := slog.New(s.Live.Log.Handler(slog.DiscardHandler))
		log.Info("the first")
		lines := bufio.NewScanner(response.Body)
		for lines.Scan() && !strings.Contains(lines.Text(), "the first") {
		}
		next := *s.config
		next.Operators = slices.Clone(next.Operators)
		change(&next.Operators[2])
		current.Store(&next)
		log.Info("the second")
		for lines.Scan() {
			if strings.Contains(lines.Text(), "the second") {
				t.Errorf("%s: the stream goes on: %s", name, lines.Text())
				break
			}
		}
		_ = response.Body.Close()
		server.Close()
	}
}
