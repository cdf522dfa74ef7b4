package commands

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"parley/adapters/slack/slacktest"
	"parley/ingest/journal/postgres/postgrestest"
)

// The secrets of the agent and of Slack in the tests of plans and cards.
const plannerSecret, plannerSigning = "planner-7f3a9c51d2e84b60a1c35e97", "kill-signing-5f0d1c"

// planned is a daemon with a Slack, whose agent answers each request later.
type planned struct {
	t       *testing.T
	slack   *slacktest.Server
	taken   chan plannedRequest // the requests to the agent
	waits   bool                // another daemon, which has waited, takes over from a killed one
	config  string              // parley.yaml
	dir     string
	daemon  *process
	address string
}

// plannedRequest is a request to the agent.
type plannedRequest struct {
	RunID   string `json:"run_id"`
	Message struct {
		Content  string
		Metadata struct {
			SenderID string `json:"sender_id"`
			Action   json.RawMessage
		}
	}
}

// inEachStore runs a test of plans and cards with a daemon on each store that is started again after a kill, and with one that is taken over.
func inEachStore(t *testing.T, test func(p *planned)) {
	t.Helper()
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
			p := &planned{t: t, taken: make(chan plannedRequest, 10), waits: c.waits}
			var err error
			if p.slack, err = slacktest.Start(slacktest.Options{}); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = p.slack.Close() }()
			agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var input plannedRequest
				if json.NewDecoder(r.Body).Decode(&input) == nil && input.RunID != "" {
					w.WriteHeader(http.StatusAccepted)
					p.taken <- input
				}
			}))
			defer agent.Close()
			p.config = "listen: 127.0.0.1:0\nconsole: {listen: \"\"}\n" + c.store(t) + "agents: [{id: planner, kind: webhook, url: \"" + agent.URL + "\", secret: " + plannerSecret + "}]\n"
			p.configure()
			p.begin()
			test(p)
		})
	}
}

// configure writes the files of a further daemon.
func (p *planned) configure() {
	p.t.Helper()
	p.dir = p.t.TempDir()
	write(p.t, p.dir, "parley.yaml", p.config)
	write(p.t, p.dir, "workspaces/acme.yaml", "id: acme\nplatform: slack\nagent: planner\nturns: {coalesce: 0s}\nslack: {mode: http, bot_token: "+slacktest.Token+
		", signing_secret: "+plannerSigning+", api_url: \""+p.slack.URL()+"\", post_rate: 0, preview: off, preview_every: 100ms, working: off, timeout: 3s}\n")
}

func (p *planned) begin() {
	p.t.Helper()
	p.daemon = start(p.t, p.dir, os.Args[0], "run")
	p.address = p.daemon.address()
	p.slack.SetHook(slacktest.Hook{URL: "http://" + p.address + "/hooks/slack/acme", Secret: plannerSigning})
}

// again kills the daemon, and starts it again unless another one takes over.
func (p *planned) again() {
	p.t.Helper()
	killed := p.daemon
	if p.waits {
		p.configure()
		p.begin()
	}
	if err := killed.cmd.Process.Kill(); err != nil {
		p.t.Fatal(err)
	}
	_ = killed.cmd.Wait() // killed by the test
	if !p.waits {
		p.begin()
	}
}

// asks lets Mara mention the bot, and returns the id of the run.
func (p *planned) asks() (run string) {
	p.t.Helper()
	question := slacktest.Message{Channel: "C0GARDEN", User: "U0MARA", Text: "<@" + slacktest.BotUser + "> do it", TS: slacktest.Timestamp(time.Now())}
	if end, err := p.slack.PushRaw(slacktest.EventsAPI, question.Mention()).Wait(p.t.Context()); err != nil || end.State != slacktest.Acked {
		p.t.Fatal(end, err)
	}
	return (<-p.taken).RunID
}

// tells calls a route as the agent.
func (p *planned) tells(path, body, key string) {
	p.t.Helper()
	if status, answer := httpCall(p.t, http.MethodPost, p.address+path, plannerSecret, body, key); status != http.StatusAccepted {
		p.t.Fatalf("%d %s", status, answer)
	}
}

func (p *planned) await(what string, holds func() bool) {
	p.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !holds(); <-time.After(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			p.t.Fatalf("%s did not happen: %+v", what, p.slack.Posts())
		}
	}
}

// allSent fails the test if a delivery is unknown or failed.
func (p *planned) allSent() {
	p.t.Helper()
	if got := parley(p.t, p.dir, "deliveries", "--json"); strings.Contains(got.stdout, `"state":"unknown"`) || strings.Contains(got.stdout, `"state":"failed"`) {
		p.t.Errorf("%+v", got)
	}
}

// TestKilledDuringAPlan kills the daemon three times while an agent works on a plan of 30 tasks: as Slack takes the first post and its
// answer is lost, during an edit whose answer is lost, and at the end. People see one post with the final states, and one answer.
// The daemon is started again, or another one, which has waited, takes over.
func TestKilledDuringAPlan(t *testing.T) {
	t.Parallel()
	inEachStore(t, func(p *planned) {
		p.slack.Script("chat.postMessage", slacktest.Fault{Effect: true, Cut: true})
		p.slack.Script("chat.update", slacktest.Fault{Effect: true, Cut: true})
		run := p.asks()
		const tasks = 30
		shown := func() (states []slacktest.Post) {
			for _, post := range p.slack.Posts() {
				if strings.Contains(string(post.Blocks), `"plan"`) {
					states = append(states, post)
				}
			}
			return states
		}
		for done := range tasks + 1 {
			var list []string
			for i := range tasks {
				list = append(list, fmt.Sprintf(`{"title":"task %d","status":%q}`, i, map[bool]string{true: "done", false: "pending"}[i < done]))
			}
			p.tells("/runs/"+run+"/updates", `{"t":2,"m":"The plan","d":{"plan":[`+strings.Join(list, ",")+`]}}`, fmt.Sprint(done))
			switch done {
			case 3:
				p.await("the first post", func() bool { return len(shown()) > 0 })
				p.again()
			case 15:
				p.await("an edit", func() bool { return len(shown()) > 0 && shown()[0].Edits > 0 })
				p.again()
			}
		}
		p.tells("/api/v1/runs/"+run+"/reply", `{"content":"It is done."}`, "")
		p.again()
		p.await("the end", func() bool {
			states := shown()
			return len(p.slack.Posts()) > 1 && len(states) > 0 && strings.Contains(states[0].Shown(), "(30 of 30 done)")
		})
		p.allSent()
		if states, all := shown(), p.slack.Posts(); len(states) != 1 || len(all) != 2 {
			p.t.Errorf("%d state posts of %d posts: %+v", len(states), len(all), all)
		}
		if blocks := string(shown()[0].Blocks); strings.Count(blocks, `"complete"`) != tasks || !strings.Contains(blocks, `"task 29"`) {
			p.t.Errorf("the plan is\n%s", blocks)
		}
	})
}

// TestKilledBesideACard kills the daemon as Slack takes a card and its answer is lost, and after each press of a button, which Slack
// delivers three times. People see one card, and each press reaches the agent as one run, with its action.
func TestKilledBesideACard(t *testing.T) {
	t.Parallel()
	inEachStore(t, func(p *planned) {
		run := p.asks()
		p.slack.Script("chat.postMessage", slacktest.Fault{}, slacktest.Fault{Effect: true, Cut: true})
		p.tells("/api/v1/runs/"+run+"/reply", `{"content":"Here it is.","ui_hints":{"title":"Room 7","actions":[{"label":"Book it","action":{"id":"book","value":7}}]}}`, "")
		p.await("the card", func() bool { return len(p.slack.Posts()) > 1 })
		p.again()
		var card struct {
			Elements []json.RawMessage
		}
		var blocks []json.RawMessage
		post := p.slack.Posts()[1]
		if err := json.Unmarshal(post.Blocks, &blocks); err != nil {
			p.t.Fatal(err)
		}
		if err := json.Unmarshal(blocks[len(blocks)-1], &card); err != nil || len(card.Elements) != 1 {
			p.t.Fatalf("%v %s", err, post.Blocks)
		}
		for n, user := range []string{"U0MARA", "U0TOM"} {
			press := fmt.Appendf(nil, `{"type":"block_actions","api_app_id":%q,"team":{"id":%q},"user":{"id":%q},"trigger_id":"1.2.%d","channel":{"id":"C0GARDEN","name":"garden"},
				"container":{"type":"message","message_ts":%q,"channel_id":"C0GARDEN","thread_ts":%q},"message":{"bot_id":%q,"text":"x","ts":%q,"thread_ts":%q},"actions":[%s]}`,
				slacktest.App, slacktest.Team, user, n, post.TS, post.ThreadTS, slacktest.BotID, post.TS, post.ThreadTS, card.Elements[0])
			for range 3 {
				if end, err := p.slack.PushRaw(slacktest.Interactive, press).Wait(p.t.Context()); err != nil || end.State != slacktest.Acked {
					p.t.Fatal(end, err)
				}
				p.again()
			}
			asked := <-p.taken
			for len(p.taken) > 0 { // the same run again, after a kill
				if again := <-p.taken; again.RunID != asked.RunID {
					p.t.Errorf("the press has a second run: %+v", again)
				}
			}
			if m := asked.Message; m.Content != "Book it" || m.Metadata.SenderID != "slack:"+user || string(m.Metadata.Action) != `{"id":"book","value":7}` {
				p.t.Errorf("%+v %s", m, m.Metadata.Action)
			}
			p.tells("/api/v1/runs/"+asked.RunID+"/reply", `{"content":"Booked."}`, "")
			p.await("the answer", func() bool { return len(p.slack.Posts()) > 2+n })
		}
		p.allSent()
		if all := p.slack.Posts(); len(all) != 4 || len(p.taken) != 0 {
			p.t.Errorf("%d posts: %+v", len(all), all)
		}
	})
}
