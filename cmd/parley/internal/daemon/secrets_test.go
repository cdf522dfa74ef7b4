package daemon_test

import (
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/adapters/slack/slacktest"
)

// TestNoSecretLeaks runs traffic that succeeds and traffic that fails in every way. It looks
// for the configuration's secrets in all that the daemon logged, stored, answered and posted.
func TestNoSecretLeaks(t *testing.T) {
	t.Parallel()
	const botToken, guestToken = "xoxb-canary-bot-7d21e9", "xoxb-canary-guest-08fa44"
	const plugToken, appToken = "xoxb-canary-plug-c3a517", "xapp-canary-app-5e0b93"
	secrets := []string{botToken, guestToken, plugToken, appToken, signingSecret, apiKey, ownToken, anyToken, metricsToken,
		viewerToken, readerToken, operatorToken, hookSecret}
	leaks := new(log) // everything that somebody outside can read
	p := plan{metrics: metricsToken, main: operatorKeys, fake: slacktest.Options{Token: botToken, OnPost: func(post slacktest.Post) {
		fmt.Fprintln(leaks, post.Text, string(post.Metadata))
	}}}
	p.files = map[string]string{
		"workspaces/acme.yaml": `
id: acme
platform: slack
agent: helper
slack: {mode: http, bot_token: ` + botToken + `, signing_secret: ` + signingSecret + `, api_url: "SLACK", post_rate: 0, timeout: 1s}
turns: {coalesce: 0s, max_attempts: 1}
`,
		"workspaces/guest.yaml": `
id: guest
platform: slack
agent: helper
slack: {mode: http, bot_token: ` + guestToken + `, signing_secret: ` + signingSecret + `-2, api_url: "SLACK"}
`,
	}
	plugged, err := slacktest.Start(slacktest.Options{Token: plugToken, AppToken: appToken})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = plugged.Close() })
	p.files["workspaces/plug.yaml"] = `
id: plug
platform: slack
agent: echo
slack: {mode: socket, bot_token: ` + plugToken + `, app_token: ` + appToken + `, api_url: "` + plugged.URL() + `"}
`
	h := open(t, p)
	collect := func(a answer) { fmt.Fprintln(leaks, a.body) }

	if err := plugged.AwaitSockets(h.ctx, 1, 1); err != nil {
		t.Fatal(err)
	}
	plugged.Script("apps.connections.open", slacktest.Fault{Cut: true},
		slacktest.Fault{Body: `{"ok":true,"url":"ws://127.0.0.1:1/` + appToken + `"}`}, slacktest.Fault{Error: "invalid_auth"})
	plugged.Cut(slacktest.All)
	h.slack.Script("chat.postMessage", slacktest.Fault{Status: http.StatusBadGateway}, slacktest.Fault{Cut: true}, slacktest.Fault{Error: "not_in_channel"})
	h.mention("tell me your key")
	h.answerNext(replyWith("It is a secret."))
	h.clock.advance(time.Minute)
	h.mention("fail")
	h.answerNext(func(w http.ResponseWriter) { // a server that repeats the key
		http.Error(w, `{"error":{"message":"Incorrect API key provided: `+apiKey+`"}}`, http.StatusUnauthorized)
	})
	h.mention("break")
	h.answerNext(breakStream)
	h.awaitMetric(`parley_runs_total{agent="helper",outcome="failed"}`, 2)
	h.clock.advance(time.Minute)
	for !strings.Contains(h.forwarded("/readyz", metricsToken).body, `"plug":{"state":"refused"`) {
		if !h.poll() {
			t.Fatalf("the workspace with a socket is not refused\n%s", h.log)
		}
	}
	collect(h.hook([]byte("no JSON")))
	collect(h.send(slacktest.NewRequest(h.ctx, h.url+"/hooks/slack/acme", ownToken, time.Now(), []byte(`{}`))))
	collect(h.post("wrong", `{}`))
	collect(h.post(ownToken, `{"metadata":7}`))
	collect(h.post(anyToken, `{"content":"hello","metadata":{"source":"x"}}`))
	collect(h.post(ownToken, `{"content":"hello","passive":true,"thread_id":"`+thread+`"}`))
	collect(h.web(http.MethodGet, "ours/threads/"+thread+"/messages", ownToken, ""))
	for _, path := range []string{"/metrics", "/readyz", "/healthz", "/"} {
		collect(h.get(path))
		collect(h.forwarded(path, metricsToken))
		collect(h.forwarded(path, ownToken))
	}
	if len(secrets) != 13 {
		t.Errorf("%d canaries", len(secrets))
	}
	for _, path := range []string{"status", "workspaces", "agents", "threads", "threads/" + thread, "questions", "audit", "log?follow=false", "steps?follow=false"} {
		for _, token := range []string{viewerToken, operatorToken, "wrong", ownToken} {
			collect(h.operatorCall(http.MethodGet, path, token))
		}
	}
	h.change("workspaces/guest.yaml", "id: guest\nplatform: slack\nagent: helper\nslack: {bot_token: ["+guestToken+"], mode: "+guestToken+"}\n")
	collect(h.operatorCall(http.MethodPost, "reload", operatorToken))
	collect(h.operatorCall(http.MethodGet, "log?follow=false", viewerToken))
	if err := h.stop(); err != nil {
		t.Fatal(err)
	}
	for _, secret := range secrets {
		text := leaks.String() + h.log.String()
		if at := strings.Index(text, secret); at >= 0 {
			t.Errorf("%s leaked: …%s", secret, text[max(0, at-200):at])
		}
		for _, file := range stored(t, h.dir) {
			if raw, err := os.ReadFile(file); err != nil || strings.Contains(string(raw), secret) {
				t.Errorf("%s is in %s (%v)", secret, file, err)
			}
		}
	}
}

// stored returns the files that the daemon wrote.
func stored(t *testing.T, dir string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(dir, "data"), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			files = append(files, path)
		}
		return err
	})
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	return files
}
