package commands

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"parley/adapters/slack/slacktest"
)

// medium is where people ask lead and see its threads.
type medium interface {
	// config returns the keys of the workspace for the platform.
	config() string
	// ask asks a question, the nth, at a daemon, and returns the id of its thread.
	ask(t *testing.T, address string, n int, question string) (thread string)
	// said returns the texts of the thread, and the states of the workstreams of a run there; it may be empty.
	said(c *nodes, thread, run string) []string
	// wants returns how often said has the texts that are not in wantTexts.
	wants() map[string]int
}

// webChat is a web workspace, whose threads have the reports themselves.
type webChat struct{}

func (webChat) config() string {
	return "platform: web\nweb: {tokens: [{id: a, token: " + webToken + ", name: c}]}\n"
}

func (webChat) ask(t *testing.T, address string, n int, question string) (thread string) {
	t.Helper()
	thread = fmt.Sprintf("6ba7b81%d-9dad-41d1-80b4-00c04fd430c8", n)
	body := fmt.Sprintf(`{"thread_id":%q,"content":%q}`, thread, question)
	if status, raw := httpCall(t, http.MethodPost, address+"/api/v1/workspaces/ours/messages", webToken, body, ""); status != http.StatusAccepted {
		t.Fatal(status, raw)
	}
	return thread
}

func (webChat) said(c *nodes, thread, run string) (texts []string) {
	c.t.Helper()
	var list struct{ Messages []struct{ Content string } }
	c.get("/api/v1/workspaces/ours/threads/"+thread+"/messages?limit=200", &list)
	for _, m := range list.Messages {
		text, _, _ := strings.Cut(m.Content, reported)
		text = text[max(0, strings.Index(text, "Workstream coder (")):] // behind the facts about it
		texts = append(texts, text)
	}
	if run != "" {
		var launched struct{ Workstreams []struct{ State string } }
		c.get("/runs/"+run+"/workstreams", &launched)
		for _, child := range launched.Workstreams {
			texts = append(texts, "it is "+child.State)
		}
	}
	return texts
}

func (webChat) wants() map[string]int {
	return map[string]int{"Workstream coder (launch_id ID, agent coder) is canceled.": 2, "it is completed": 1, "it is canceled": 2}
}

// slackChat is a Slack, whose threads have the reports that lead repeats, and a state post.
type slackChat struct{ *slacktest.Server }

const toolsChannel = "C0GARDEN"

func startSlackChat(t *testing.T) medium {
	t.Helper()
	slack, err := slacktest.Start(slacktest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = slack.Close() })
	return slackChat{slack}
}

func (s slackChat) config() string {
	return "platform: slack\nslack: {mode: http, bot_token: " + slacktest.Token + ", signing_secret: " + plannerSigning + ", api_url: \"" + s.URL() +
		"\", post_rate: 0, preview_every: 100ms, timeout: 3s}\n"
}

func (s slackChat) ask(t *testing.T, address string, _ int, question string) (thread string) {
	t.Helper()
	s.SetHook(slacktest.Hook{URL: "http://" + address + "/hooks/slack/ours", Secret: plannerSigning})
	m, events := s.Say(slacktest.Message{Channel: toolsChannel, User: "U0MARA", Text: "<@" + slacktest.BotUser + "> " + question})
	for _, e := range events {
		if end, err := e.Wait(t.Context()); err != nil || end.State != slacktest.Acked {
			t.Fatal(end, err)
		}
	}
	return m.TS
}

func (s slackChat) said(_ *nodes, thread, _ string) (texts []string) {
	for _, p := range s.Thread(toolsChannel, thread) {
		texts = append(texts, strings.Split(strings.TrimPrefix(p.Shown(), "<@"+slacktest.BotUser+"> "), reported)...)
	}
	return texts
}

func (slackChat) wants() map[string]int {
	return map[string]int{"Workstreams ✅ coder ⏹️ coder (stopped) ⏹️ coder (stopped)": 1}
}
