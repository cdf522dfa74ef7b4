package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"parley/adapters/slack/slacktest"
)

// TestKilledDuringAPost kills the daemon while Slack takes the post of a program: Slack shows it and its answer is lost.
// The program repeats its requests at the next daemon. Slack shows each post once, and each is sent.
func TestKilledDuringAPost(t *testing.T) {
	t.Parallel()
	effect := make(chan struct{}, 10)
	slack, err := slacktest.Start(slacktest.Options{OnPost: func(slacktest.Post) { effect <- struct{}{} }})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = slack.Close() }()
	slack.Script("chat.postMessage", slacktest.Fault{}, slacktest.Fault{Effect: true, Cut: true})
	dir := t.TempDir()
	write(t, dir, "parley.yaml", "listen: 127.0.0.1:0\nconsole: {listen: \"\"}\nagents: [{id: echo, kind: echo}]\n")
	write(t, dir, "workspaces/acme.yaml", "id: acme\nplatform: slack\nagent: echo\nslack: {mode: http, bot_token: "+slacktest.Token+
		", signing_secret: kill-signing-5f0d1c, api_url: \""+slack.URL()+"\", post_rate: 0, preview: off, working: off, timeout: 3s}\n")
	write(t, dir, "workspaces/ours.yaml", "id: ours\nplatform: web\nagent: echo\nweb: {tokens: [{id: a, token: "+webToken+", name: c, posts: [acme]}]}\n")
	first := start(t, dir, os.Args[0], "run")
	ours := conversation{t, first.address()}
	post := func(n int) (id string) {
		t.Helper()
		var p struct{ ID string }
		raw := ours.at(http.MethodPost, "/api/v1/workspaces/acme/posts", fmt.Sprintf(`{"to":{"channel":"C0GARDEN"},"content":"post %d","key":"k%d"}`, n, n))
		if err := json.Unmarshal(raw, &p); err != nil {
			t.Fatal(err)
		}
		return p.ID
	}
	ids := []string{post(0), post(1), post(2)}
	<-effect
	<-effect
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.cmd.Wait() // killed by the test
	ours.address = start(t, dir, os.Args[0], "run").address()
	for n, id := range ids {
		if again := post(n); again != id {
			t.Errorf("post %d is %s, and was %s", n, again, id)
		}
	}
	for _, id := range ids {
		for deadline := time.Now().Add(2 * time.Minute); ; <-time.After(50 * time.Millisecond) {
			if raw := string(ours.at(http.MethodGet, "/api/v1/posts/"+id, "")); strings.Contains(raw, `"state":"sent"`) {
				break
			} else if time.Now().After(deadline) {
				t.Fatal(raw)
			}
		}
	}
	if got := parley(t, dir, "post", "--workspace", "acme", "--to", "C0GARDEN", "--key", "k", "by hand"); got.status != 0 || !strings.Contains(got.stdout, "post ") {
		t.Fatalf("%+v", got)
	}
	<-effect
	<-effect
	seen := map[string]int{}
	for _, p := range slack.Posts() {
		seen[p.Text+p.Markdown]++
	}
	if len(seen) != 4 || len(slack.Posts()) != 4 {
		t.Errorf("the posts are %v", seen)
	}
}
