package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/adapters/slack/slacktest"
	"parley/ingest/journal/postgres/postgrestest"
)

// TestKilledDuringAPlan kills the daemon three times while an agent works on a plan of 30 tasks: as Slack takes the first post and its
// answer is lost, during an edit whose answer is lost, and at the end. People see one post with the final states, and one answer.
// The daemon is started again, or another one, which has waited, takes over.
func TestKilledDuringAPlan(t *testing.T) {
	t.Parallel()
	postgres := func(t *testing.T) string { return "store: " + postgrestest.URL(t) + "\n" }
	for name, c := range map[string]struct {
		store func(*testing.T) string
		waits bool
	}{
		"sqlite":   {func(*testing.T) string { return "" }, false},
		"postgres": {postgres, false},
		"takeover": {postgres, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			killedDuringAPlan(t, c.store(t), c.waits)
		})
	}
}

// killedDuringAPlan kills daemons; waits means that another one takes over.
func killedDuringAPlan(t *testing.T, store string, waits bool) {
	var posts, edits atomic.Int32
	slack, err := slacktest.Start(slacktest.Options{
		OnPost:   func(slacktest.Post) { posts.Add(1) },
		OnChange: func(slacktest.Post) { edits.Add(1) },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = slack.Close() }()
	slack.Script("chat.postMessage", slacktest.Fault{Effect: true, Cut: true})
	slack.Script("chat.update", slacktest.Fault{Effect: true, Cut: true})
	taken := make(chan string, 10)
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var input struct {
			RunID string `json:"run_id"`
		}
		if json.NewDecoder(r.Body).Decode(&input) == nil && input.RunID != "" {
			w.WriteHeader(http.StatusAccepted)
			taken <- input.RunID
		}
	}))
	defer agent.Close()
	const secret, signing = "planner-7f3a9c51d2e84b60a1c35e97", "kill-signing-5f0d1c"
	configured := func() string {
		dir := t.TempDir()
		write(t, dir, "parley.yaml", "listen: 127.0.0.1:0\nconsole: {listen: \"\"}\n"+store+"agents: [{id: planner, kind: webhook, url: \""+agent.URL+"\", secret: "+secret+"}]\n")
		write(t, dir, "workspaces/acme.yaml", "id: acme\nplatform: slack\nagent: planner\nturns: {coalesce: 0s}\nslack: {mode: http, bot_token: "+slacktest.Token+
			", signing_secret: "+signing+", api_url: \""+slack.URL()+"\", post_rate: 0, preview: off, preview_every: 100ms, working: off, timeout: 3s}\n")
		return dir
	}
	dir := configured()
	daemon := start(t, dir, os.Args[0], "run")
	address := daemon.address()
	again := func() {
		t.Helper()
		killed := daemon
		if waits {
			dir = configured()
			daemon = start(t, dir, os.Args[0], "run")
			address = daemon.address()
		}
		if err := killed.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = killed.cmd.Wait() // killed by the test
		if !waits {
			daemon = start(t, dir, os.Args[0], "run")
			address = daemon.address()
		}
	}
	question := slacktest.Message{Channel: "C0GARDEN", User: "U0MARA", Text: "<@" + slacktest.BotUser + "> do it", TS: slacktest.Timestamp(time.Now())}
	request, err := slacktest.NewRequest(t.Context(), "http://"+address+"/hooks/slack/acme", signing, time.Now(), question.Mention())
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatal(response, err)
	}
	_ = response.Body.Close()
	run := <-taken
	const tasks = 30
	shown := func() (states []slacktest.Post) {
		for _, p := range slack.Posts() {
			if strings.Contains(p.Shown(), "The plan") {
				states = append(states, p)
			}
		}
		return states
	}
	await := func(what string, holds func() bool) {
		t.Helper()
		for deadline := time.Now().Add(2 * time.Minute); !holds(); <-time.After(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s did not happen: %+v", what, slack.Posts())
			}
		}
	}
	for done := range tasks + 1 {
		var list []string
		for i := range tasks {
			list = append(list, fmt.Sprintf(`{"title":"task %d","status":%q}`, i, map[bool]string{true: "done", false: "pending"}[i < done]))
		}
		body := `{"t":2,"m":"The plan","d":{"plan":[` + strings.Join(list, ",") + `]}}`
		if status, answer := httpCall(t, http.MethodPost, address+"/runs/"+run+"/updates", secret, body, fmt.Sprint(done)); status != http.StatusAccepted {
			t.Fatalf("%d %s", status, answer)
		}
		switch done {
		case 3:
			await("the first post", func() bool { return posts.Load() > 0 })
			again()
		case 15:
			await("an edit", func() bool { return edits.Load() > 0 })
			again()
		}
	}
	if status, answer := httpCall(t, http.MethodPost, address+"/api/v1/runs/"+run+"/reply", secret, `{"content":"It is done."}`, ""); status != http.StatusAccepted {
		t.Fatalf("%d %s", status, answer)
	}
	again()
	await("the end", func() bool {
		states := shown()
		return len(slack.Posts()) > 1 && len(states) > 0 && strings.Contains(states[0].Shown(), "(30 of 30 done)")
	})
	if got := parley(t, dir, "deliveries", "--json"); strings.Contains(got.stdout, `"state":"unknown"`) || strings.Contains(got.stdout, `"state":"failed"`) {
		t.Errorf("%+v", got)
	}
	if states, all := shown(), slack.Posts(); len(states) != 1 || len(all) != 2 {
		t.Errorf("%d state posts of %d posts: %+v", len(states), len(all), all)
	}
	if text := shown()[0].Shown(); strings.Count(text, "✅") != tasks || !strings.Contains(text, "task 29") {
		t.Errorf("the plan is\n%s", text)
	}
}
