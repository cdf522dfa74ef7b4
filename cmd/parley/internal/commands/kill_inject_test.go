package commands

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/adapters/slack/slacktest"
	"parley/ingest/journal/postgres/postgrestest"
)

// program gets the answers to its messages, and loses every second response.
type program struct {
	*httptest.Server
	mu    sync.Mutex
	calls int
	got   map[string]map[string]int // how often a body came, by the message that it answers
}

func newProgram(t *testing.T) *program {
	p := &program{got: map[string]map[string]int{}}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var answer struct {
			InReplyTo string `json:"in_reply_to"`
		}
		raw, err := io.ReadAll(r.Body)
		if err != nil || json.Unmarshal(raw, &answer) != nil {
			return // the daemon was killed
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.got[answer.InReplyTo] == nil {
			p.got[answer.InReplyTo] = map[string]int{}
		}
		p.got[answer.InReplyTo][string(raw)]++
		if p.calls++; p.calls%2 == 1 {
			panic(http.ErrAbortHandler)
		}
	}))
	t.Cleanup(p.Close)
	return p
}

// answers returns the bodies that answer a message, each once.
func (p *program) answers(id string) (bodies []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for body := range p.got[id] {
		bodies = append(bodies, body)
	}
	return bodies
}

// TestKilledDuringInjectedMessages kills the daemon while Slack takes an announcement, and the next one while Slack takes an
// answer: Slack shows each, and its response is lost. The program, which loses responses itself, repeats its requests at each
// daemon. Slack shows each announcement and each answer once, and the program gets one answer to each message.
func TestKilledDuringInjectedMessages(t *testing.T) {
	t.Parallel()
	effect := make(chan struct{}, 10)
	slack, err := slacktest.Start(slacktest.Options{OnPost: func(slacktest.Post) { effect <- struct{}{} }})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = slack.Close() }()
	slack.Script("chat.postMessage", slacktest.Fault{Effect: true, Cut: true})
	crm := newProgram(t)
	dir := t.TempDir()
	write(t, dir, "parley.yaml", "listen: 127.0.0.1:0\nconsole: {listen: \"\"}\nagents: [{id: echo, kind: echo}]\n")
	write(t, dir, "workspaces/acme.yaml", "id: acme\nplatform: slack\nagent: echo\nturns: {coalesce: 0s}\nslack: {mode: http, bot_token: "+slacktest.Token+
		", signing_secret: kill-signing-5f0d1c, api_url: \""+slack.URL()+"\", post_rate: 0, preview: off, working: off, timeout: 3s}\n")
	write(t, dir, "workspaces/ours.yaml", "id: ours\nplatform: web\nagent: echo\nweb: {tokens: [{id: a, token: "+webToken+", name: c, injects: [acme], deliver: {url: \""+
		crm.URL+"\", secret: kill-deliver-90b1c7-4e2f}}]}\n")
	ours := conversation{t: t}
	inject := func(n int) (id string) {
		t.Helper()
		var m struct{ Message struct{ ID string } }
		raw := ours.at(http.MethodPost, "/api/v1/workspaces/acme/messages", fmt.Sprintf(`{"to":{"channel":"C0GARDEN"},"content":"question %d","mentioned":true,"announce":true,
			"client_message_id":"k%d","metadata":{"source":"crm","sender_id":"crm:7","sender_display_name":"Nora","sender_type":"human"}}`, n, n))
		if err := json.Unmarshal(raw, &m); err != nil || m.Message.ID == "" {
			t.Fatalf("%v %s", err, raw)
		}
		return m.Message.ID
	}
	var ids []string
	daemon := func(posts int) {
		t.Helper()
		p := start(t, dir, os.Args[0], "run")
		ours.address = p.address()
		for n := range 3 {
			switch id := inject(n); {
			case len(ids) == n:
				ids = append(ids, id)
			case ids[n] != id:
				t.Errorf("message %d is %s, and was %s", n, id, ids[n])
			}
		}
		for range posts {
			<-effect
		}
		if err := p.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = p.cmd.Wait() // killed by the test
	}
	daemon(1)
	slack.Script("chat.postMessage", slacktest.Fault{}, slacktest.Fault{}, slacktest.Fault{Effect: true, Cut: true})
	daemon(3)
	ours.address = start(t, dir, os.Args[0], "run").address()
	for n := range ids {
		inject(n)
	}
	for deadline := time.Now().Add(2 * time.Minute); ; <-time.After(50 * time.Millisecond) {
		done := len(slack.Posts()) >= 6
		for _, id := range ids {
			done = done && len(crm.answers(id)) > 0
		}
		if done {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d posts, the program has %v", len(slack.Posts()), crm.got)
		}
	}
	seen, roots := map[string]int{}, map[string]string{}
	for _, p := range slack.Posts() {
		seen[p.Text+p.Markdown]++
		roots[p.TS] = p.Text + p.Markdown
		if p.ThreadTS != "" && !strings.HasSuffix(roots[p.ThreadTS], p.Text) {
			t.Errorf("the answer %q is below %q", p.Text+p.Markdown, roots[p.ThreadTS])
		}
	}
	if len(seen) != 6 || len(slack.Posts()) != 6 {
		t.Errorf("the posts are %v", seen)
	}
	for n, id := range ids {
		if got := crm.answers(id); len(got) != 1 || !strings.Contains(got[0], fmt.Sprintf(`"content":"question %d"`, n)) {
			t.Errorf("the answers to message %d are %v", n, got)
		}
	}
	if got := parley(t, dir, "why", ids[0]); got.status != 0 || !strings.Contains(got.stdout, "over program") || !strings.Contains(got.stdout, "mention") || strings.Count(got.stdout, "delivery") < 3 {
		t.Errorf("%+v", got)
	}
}

// TestKilledDuringManyAnnouncements kills the daemon six times on each store while it announces 14 messages and answers them, asks its agent
// at the times of schedules and posts to persons, and while Slack refuses six posts, of which half take effect. Slack shows each
// announcement, each answer and each post once: each answer below its announcement, each tick in its channel, each post in its conversation.
func TestKilledDuringManyAnnouncements(t *testing.T) {
	t.Parallel()
	for name, store := range map[string]func(*testing.T) string{
		"sqlite": func(*testing.T) string { return "" }, "postgres": func(t *testing.T) string { return "store: " + postgrestest.URL(t) + "\n" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			killDuringManyAnnouncements(t, store(t))
		})
	}
}

// killDuringManyAnnouncements is TestKilledDuringManyAnnouncements on a store.
func killDuringManyAnnouncements(t *testing.T, store string) {
	const many, kills = 14, 6
	const total = 2*many + 2*kills // posts
	effect := make(chan struct{}, 10*total)
	slack, err := slacktest.Start(slacktest.Options{OnPost: func(slacktest.Post) { effect <- struct{}{} }})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = slack.Close() }()
	slack.AddUser(slacktest.User{ID: "U0MARA"})
	for n := range kills {
		slack.Script("chat.postMessage", slacktest.Fault{Status: http.StatusServiceUnavailable, Effect: n%2 == 0}, slacktest.Fault{})
	}
	dir, ticks := t.TempDir(), ""
	for n := range kills {
		ticks += fmt.Sprintf("  - {id: s%d, cron: 0 0 29 2 *, to: {channel: C0SHED}, prompt: tick %d}\n", n, n)
	}
	write(t, dir, "parley.yaml", "listen: 127.0.0.1:0\nconsole: {listen: \"\"}\n"+store+"agents: [{id: echo, kind: echo}]\n")
	write(t, dir, "workspaces/acme.yaml", "id: acme\nplatform: slack\nagent: echo\nturns: {coalesce: 0s}\nslack: {mode: http, bot_token: "+slacktest.Token+
		", signing_secret: kill-signing-5f0d1c, api_url: \""+slack.URL()+"\", post_rate: 0, preview: off, working: off, timeout: 3s}\nschedules:\n"+ticks)
	write(t, dir, "workspaces/ours.yaml", "id: ours\nplatform: web\nagent: echo\nweb: {tokens: [{id: a, token: "+webToken+", name: c, injects: [acme], posts: [acme]}]}\n")
	ours := conversation{t: t}
	for kill := range kills + 1 {
		daemon := start(t, dir, os.Args[0], "run")
		ours.address = daemon.address()
		for n := range many {
			ours.at(http.MethodPost, "/api/v1/workspaces/acme/messages", fmt.Sprintf(`{"to":{"channel":"C0GARDEN"},"content":"question %02d","mentioned":true,"announce":true,
				"client_message_id":"k%d","metadata":{"source":"crm","sender_id":"crm:7","sender_display_name":"Nora","sender_type":"human"}}`, n, n))
		}
		for n := range kills {
			ours.at(http.MethodPost, "/api/v1/workspaces/acme/posts", fmt.Sprintf(`{"to":{"user":"U0MARA"},"content":"post %d","key":"p%d"}`, n, n))
		}
		if kill == kills {
			break
		}
		if got := parley(t, dir, "schedules", "run", fmt.Sprint("s", kill)); got.status != 0 {
			t.Fatalf("%+v", got)
		}
		<-effect
		if err := daemon.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = daemon.cmd.Wait() // killed by the test
	}
	for deadline := time.Now().Add(2 * time.Minute); len(slack.Posts()) < total; <-time.After(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d posts of %d: %+v", len(slack.Posts()), total, slack.Posts())
		}
	}
	roots, seen := map[string]string{}, map[string]int{}
	for _, p := range slack.Posts() {
		text, right := p.Text, false
		switch kind, _, _ := strings.Cut(text, " "); kind {
		case "question":
			right = p.ThreadTS != "" && strings.HasSuffix(roots[p.ThreadTS], text)
		case "tick":
			right = p.Channel == "C0SHED" && p.ThreadTS == ""
		case "post":
			right = p.Channel == "DU0MARA" && p.ThreadTS == ""
		default:
			roots[p.TS] = text
			right = p.Channel == "C0GARDEN" && p.ThreadTS == ""
		}
		if seen[text]++; !right {
			t.Errorf("%q is in %s below %q", text, p.Channel, roots[p.ThreadTS])
		}
	}
	if len(roots) != many || len(seen) != total || len(slack.Posts()) != total {
		t.Errorf("%d announcements, %d texts in %d posts of %d: %v", len(roots), len(seen), len(slack.Posts()), total, seen)
	}
}
