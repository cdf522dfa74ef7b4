package commands

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"parley/adapters/slack/slacktest"
	"parley/cmd/parley/internal/operator"
)

// shown returns the texts of all posts.
func shown(slack *slacktest.Server) (all string) {
	for _, p := range slack.Posts() {
		all += p.Text + p.Markdown + "\n"
	}
	return all
}

// TestKilledAroundTicks kills the daemon right after it has taken a tick of a schedule, and while Slack takes the answer, whose
// acknowledgement is lost. The next daemon goes on. Each tick has one post.
func TestKilledAroundTicks(t *testing.T) {
	t.Parallel()
	const rounds = 6
	effect := make(chan struct{}, 100)
	slack, err := slacktest.Start(slacktest.Options{OnPost: func(slacktest.Post) { effect <- struct{}{} }})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = slack.Close() }()
	dir := t.TempDir()
	write(t, dir, "parley.yaml", "listen: 127.0.0.1:0\nconsole: {listen: \"\"}\nagents: [{id: echo, kind: echo}]\n")
	list := "  - {id: minutely, cron: \"* * * * *\", to: {channel: C0GARDEN}, prompt: minutely, missed: once, paused: true}\n"
	for n := range rounds {
		list += fmt.Sprintf("  - {id: s%d, cron: 0 0 29 2 *, to: {channel: C0GARDEN}, prompt: tick %d, thread: %s}\n", n, n, []string{"new", "same"}[n%2])
	}
	write(t, dir, "workspaces/acme.yaml", "id: acme\nplatform: slack\nagent: echo\nslack: {mode: http, bot_token: "+slacktest.Token+
		", signing_secret: kill-signing-5f0d1c, api_url: \""+slack.URL()+"\", post_rate: 0, preview: off, working: off, timeout: 3s}\nschedules:\n"+list)
	daemon := start(t, dir, os.Args[0], "run")
	daemon.address()
	for n := range rounds {
		if n%2 == 1 {
			slack.Script("chat.postMessage", slacktest.Fault{Effect: true, Cut: true})
		}
		if got := parley(t, dir, "schedules", "run", fmt.Sprint("s", n)); got.status != 0 {
			t.Fatalf("%+v", got)
		}
		for n%2 == 1 && !strings.Contains(shown(slack), fmt.Sprint("tick ", n)) {
			<-effect
		}
		if err := daemon.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = daemon.cmd.Wait() // killed by the test
		daemon = start(t, dir, os.Args[0], "run")
		daemon.address()
	}
	deadline := time.Now().Add(2 * time.Minute)
	for posted := 0; posted < rounds; <-time.After(50 * time.Millisecond) {
		posted = 0
		got := parley(t, dir, "schedules", "--json")
		for line := range strings.Lines(got.stdout) {
			var s operator.Schedule
			if err := json.Unmarshal([]byte(line), &s); err != nil {
				t.Fatalf("%v: %+v", err, got)
			}
			if s.LastResult == "posted" {
				posted++
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("%+v", got)
		}
	}
	for len(slack.Posts()) < rounds && time.Now().Before(deadline) {
		<-time.After(20 * time.Millisecond)
	}
	seen := map[string]int{}
	for _, p := range slack.Posts() {
		seen[p.Text+p.Markdown]++
	}
	if len(seen) != rounds || len(slack.Posts()) != rounds {
		t.Errorf("the posts are %v", seen)
	}
	if got := parley(t, dir, "schedules"); got.status != 0 || !strings.Contains(got.stdout, "paused") {
		t.Errorf("%+v", got)
	}
}
