package commands

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

// TestKilledDuringAPostToAPerson kills the daemon while Slack opens the direct messages with a person, whose answer is
// lost, and again between two parts of the post. Slack shows each part and the file once, in their order. A post by hand
// in the thread goes there too.
func TestKilledDuringAPostToAPerson(t *testing.T) {
	t.Parallel()
	opening, effect := make(chan struct{}, 10), make(chan struct{}, 100)
	slack, err := slacktest.Start(slacktest.Options{OnPost: func(slacktest.Post) { effect <- struct{}{} }, OnCall: func(c slacktest.Call) {
		if c.Method == "conversations.open" {
			opening <- struct{}{}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = slack.Close() }()
	slack.AddUser(slacktest.User{ID: "U0MARA"})
	never := make(chan struct{})
	defer close(never)
	slack.Script("conversations.open", slacktest.Fault{Effect: true, Hold: never})
	slack.Script("chat.postMessage", slacktest.Fault{}, slacktest.Fault{Hold: never}) // the second part never arrives
	dir := t.TempDir()
	write(t, dir, "parley.yaml", "listen: 127.0.0.1:0\nconsole: {listen: \"\"}\nagents: [{id: echo, kind: echo}]\n")
	write(t, dir, "workspaces/acme.yaml", "id: acme\nplatform: slack\nagent: echo\nslack: {mode: http, bot_token: "+slacktest.Token+
		", signing_secret: kill-signing-5f0d1c, api_url: \""+slack.URL()+"\", post_rate: 0, preview: off, working: off, timeout: 3s, file_over: 0}\n")
	write(t, dir, "workspaces/ours.yaml", "id: ours\nplatform: web\nagent: echo\nweb: {tokens: [{id: a, token: "+webToken+", name: c, posts: [acme]}]}\n")
	parts := []string{strings.Repeat("first ", 1500), strings.Repeat("second ", 1400), strings.Repeat("third ", 1500)}
	body, _ := json.Marshal(map[string]any{ // it always encodes
		"to": map[string]string{"user": "U0MARA"}, "content": strings.Join(parts, "\n\n"), "key": "k",
		"attachments": []map[string]string{{"name": "rain.txt", "mime_type": "text/plain", "data": "MTBtbQ=="}},
	})
	type post struct {
		ID, State string
		ThreadID  string `json:"thread_id"`
		Link      string
	}
	run := func() (*process, conversation, post) {
		t.Helper()
		p := start(t, dir, os.Args[0], "run")
		ours := conversation{t, p.address()}
		var got post
		if err := json.Unmarshal(ours.at(http.MethodPost, "/api/v1/workspaces/acme/posts", string(body)), &got); err != nil {
			t.Fatal(err)
		}
		return p, ours, got
	}
	kill := func(p *process) {
		t.Helper()
		if err := p.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = p.cmd.Wait() // killed by the test
	}
	first, _, made := run()
	<-opening
	kill(first)
	second, _, again := run()
	if again.ID != made.ID {
		t.Errorf("the post is %s, and was %s", again.ID, made.ID)
	}
	<-opening
	<-effect
	kill(second)
	_, ours, _ := run()
	for deadline := time.Now().Add(2 * time.Minute); made.State != "sent"; <-time.After(50 * time.Millisecond) {
		if raw := ours.at(http.MethodGet, "/api/v1/posts/"+made.ID, ""); json.Unmarshal(raw, &made) != nil || time.Now().After(deadline) {
			t.Fatal(string(raw))
		}
	}
	if got := parley(t, dir, "post", "--workspace", "acme", "--thread", made.ThreadID, "by hand"); got.status != 0 {
		t.Fatalf("%+v", got)
	}
	for len(slack.Posts()) < 5 {
		<-effect
	}
	var seen []string
	for _, p := range slack.Posts() {
		word, _, _ := strings.Cut(strings.TrimSpace(p.Text+p.Markdown), " ")
		if seen = append(seen, word); p.Channel != "DU0MARA" {
			t.Errorf("a post is in %s", p.Channel)
		}
	}
	if want := []string{"first", "second", "third", "", "by"}; fmt.Sprint(seen) != fmt.Sprint(want) {
		t.Errorf("the posts begin with %q, want %q", seen, want)
	}
	if got := parley(t, dir, "post", "--workspace", "acme", "--user", "U0MARA", "--key", "k", "to a person"); got.status != 0 {
		t.Fatalf("%+v", got)
	}
}

// TestKilledDuringManyPosts: programs post to channels and to persons while Slack loses answers and refuses calls,
// and the daemon is killed again and again. Slack shows each post once.
func TestKilledDuringManyPosts(t *testing.T) {
	t.Parallel()
	const posts, kills, persons = 40, 3, 5
	effect := make(chan struct{}, 10*posts)
	slack, err := slacktest.Start(slacktest.Options{OnPost: func(slacktest.Post) { effect <- struct{}{} }, Plan: slacktest.Mix(7,
		slacktest.Chance{P: 0.1, Fault: slacktest.Fault{Effect: true, Cut: true}}, slacktest.Chance{P: 0.1, Fault: slacktest.Fault{Cut: true}},
		slacktest.Chance{P: 0.05, Fault: slacktest.Fault{Effect: true, Status: http.StatusBadGateway}},
		slacktest.Chance{Method: "conversations.open", P: 0.2, Fault: slacktest.Fault{Effect: true, Cut: true}},
	)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = slack.Close() }()
	for i := range persons {
		slack.AddUser(slacktest.User{ID: fmt.Sprint("U0", i)})
	}
	dir := t.TempDir()
	write(t, dir, "parley.yaml", "listen: 127.0.0.1:0\nconsole: {listen: \"\"}\nagents: [{id: echo, kind: echo}]\n")
	write(t, dir, "workspaces/acme.yaml", "id: acme\nplatform: slack\nagent: echo\nslack: {mode: http, bot_token: "+slacktest.Token+
		", signing_secret: kill-signing-5f0d1c, api_url: \""+slack.URL()+"\", post_rate: 0, preview: off, working: off, timeout: 3s}\n")
	write(t, dir, "workspaces/ours.yaml", "id: ours\nplatform: web\nagent: echo\nweb: {tokens: [{id: a, token: "+webToken+", name: c, posts: [acme]}]}\n")
	ours := conversation{t: t}
	post := func(n int) (id string) {
		t.Helper()
		to := fmt.Sprintf(`{"channel":"C0GARDEN%d"}`, n%3)
		if n%2 == 0 {
			to = fmt.Sprintf(`{"user":"U0%d"}`, n/2%persons)
		}
		var p struct{ ID string }
		if err := json.Unmarshal(ours.at(http.MethodPost, "/api/v1/workspaces/acme/posts", fmt.Sprintf(`{"to":%s,"content":"post %d","key":"k%d"}`, to, n, n)), &p); err != nil {
			t.Fatal(err)
		}
		return p.ID
	}
	var ids []string
	for kill := range kills + 1 {
		daemon := start(t, dir, os.Args[0], "run")
		ours.address = daemon.address()
		for n, id := range ids {
			if n%7 == 0 && post(n) != id {
				t.Errorf("post %d has another id after the kill", n)
			}
		}
		for range posts / (kills + 1) {
			ids = append(ids, post(len(ids)))
		}
		if kill < kills {
			for range 3 {
				<-effect
			}
			if err := daemon.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = daemon.cmd.Wait() // killed by the test
		}
	}
	for _, id := range ids {
		for deadline := time.Now().Add(3 * time.Minute); ; <-time.After(50 * time.Millisecond) {
			if raw := string(ours.at(http.MethodGet, "/api/v1/posts/"+id, "")); strings.Contains(raw, `"state":"sent"`) {
				break
			} else if time.Now().After(deadline) {
				t.Fatal(raw)
			}
		}
	}
	seen := map[string]int{}
	for _, p := range slack.Posts() {
		seen[p.Channel+" "+p.Text+p.Markdown]++
	}
	if len(seen) != len(ids) || len(slack.Posts()) != len(ids) {
		t.Errorf("%d posts are %d messages: %v", len(ids), len(slack.Posts()), seen)
	}
}
