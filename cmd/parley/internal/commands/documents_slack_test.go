package commands

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"parley/adapters/slack/slacktest"
)

// commands returns the first block of commands of a page that contains a text.
func commands(t *testing.T, path, text string) (page, block) {
	t.Helper()
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			if p.path == path && b.lang == "sh" && strings.Contains(b.text, text) {
				return p, b
			}
		}
	}
	t.Fatalf("%s has no commands with %q", path, text)
	return page{}, block{}
}

// TestDocumentsOnSlack runs the commands of pages that need a workspace on Slack with a channel, or an agent that
// answers later: the files of adapters/slack/README.md with a fake Slack, the commands that start the daemon there, then
// those of .github/NO_ANSWER.md, adapters/web/README.md and adapters/agent/webhook/README.md, and those of
// .github/RUNBOOK.md for deliveries that failed.
func TestDocumentsOnSlack(t *testing.T) {
	t.Parallel()
	p, start := commands(t, "adapters/slack/README.md", "parley check")
	r := newReader(t, p, builtPrograms(t))
	r.need("curl jq")
	secret := func(name string) (value string) {
		for _, variable := range r.env {
			if key, v, _ := strings.Cut(variable, "="); key == name {
				value = v
			}
		}
		return value
	}
	slack, err := slacktest.Start(slacktest.Options{Token: secret("SLACK_BOT_TOKEN"), AppToken: secret("SLACK_APP_TOKEN")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = slack.Close() })
	const channel = "C06RY3YBSLE"
	slack.AddChannel(channel, "general")
	later := make(chan string, 1)
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		var asked struct {
			RunID string `json:"run_id"`
		}
		if json.NewDecoder(q.Body).Decode(&asked) == nil {
			w.WriteHeader(http.StatusAccepted)
			select {
			case later <- asked.RunID:
			default: // only the first run is answered
			}
		}
	}))
	t.Cleanup(agent.Close)

	const token = "7f3a9c51d2e84b60a1c35e97b2d4"
	write(t, r.dir, "parley.yaml", r.own+"agents: [{id: assistant, kind: webhook, url: \""+agent.URL+"\", secret: "+token+", answer_within: 1h}]\n")
	for _, b := range p.blocks {
		if b.file() == "workspaces/acme.yaml" {
			write(t, r.dir, b.file(), strings.Replace(b.text, "slack: {", "slack: {api_url: \""+slack.URL()+"\", ", 1))
		}
	}
	write(t, r.dir, "workspaces/ours.yaml", "id: ours\nplatform: web\nagent: assistant\nweb: {tokens: [{id: a, token: "+token+", name: a, senders: any, posts: [acme], injects: [acme]}]}\n")
	check, run, _ := strings.Cut(start.text, "\n")
	r.run(start, check)
	r.begin(start, run)
	for !strings.Contains(r.printed, "acme       slack     up") && t.Context().Err() == nil {
		r.run(block{}, "parley status || true")
	}

	said := slacktest.Message{Channel: channel, User: "U0MARA", Text: "hello everybody", TS: "1795754356.388078"}
	slack.Say(said)
	_, why := commands(t, ".github/NO_ANSWER.md", "parley why")
	for !strings.Contains(r.printed, "hello everybody") && t.Context().Err() == nil {
		r.run(why, why.text)
	}
	if !strings.Contains(r.printed, "NOT ANSWERED") {
		t.Errorf("%s", r.printed)
	}

	r.run(block{}, "TOKEN="+token+" WEBHOOK_SECRET="+token)
	_, post := commands(t, "adapters/web/README.md", "/posts/$POST")
	r.run(post, r.address.Replace(post.text))
	_, inject := commands(t, "adapters/web/README.md", `"announce":true`)
	r.run(inject, r.address.Replace(inject.text))
	posts, err := slack.Await(t.Context(), 2)
	if err != nil || !strings.Contains(fmt.Sprint(posts), "Rain") || !strings.Contains(fmt.Sprint(posts), "Is it dry?") {
		t.Errorf("%v, %+v", err, posts)
	}

	refused := slacktest.Fault{Error: "is_archived"}
	slack.Script("chat.postMessage", refused, refused, refused)
	for n := range 3 {
		r.run(post, strings.Replace(r.address.Replace(post.text), "summary", fmt.Sprint("refused-", n), 1))
	}
	failed := regexp.MustCompile(`(?m)^(\d+) `)
	for len(failed.FindAllString(r.printed, -1)) < 3 && t.Context().Err() == nil {
		r.run(block{}, "parley deliveries --state unknown,failed")
	}
	ids := failed.FindAllStringSubmatch(r.printed, -1)
	r.run(block{}, "parley deliveries resend "+ids[0][1]+"; parley deliveries drop "+ids[1][1]+"; parley deliveries confirm "+ids[2][1]+" --post "+channel+"/1795754999.000100; parley deliveries --state unknown,failed")
	if !strings.Contains(r.printed, "Sent as "+channel) || failed.MatchString(r.printed) {
		t.Errorf("%s", r.printed)
	}

	_, reply := commands(t, "adapters/agent/webhook/README.md", "$RUN")
	r.run(reply, "RUN="+<-later+"\n"+r.address.Replace(reply.text))
	if posts, err = slack.Await(t.Context(), 4); err != nil || !strings.Contains(fmt.Sprint(posts), "The report is ready.") {
		t.Errorf("%v, %+v", err, posts)
	}
}
