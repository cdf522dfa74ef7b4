package daemon_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/ingest/journal/usage"
)

// TestSendersAreToldOfALimit proves that a person above a limit gets one ephemeral notice in a
// window, that other people are answered, and that the next window has runs again.
func TestSendersAreToldOfALimit(t *testing.T) {
	t.Parallel()
	h := open(t, plan{acme: "limits: {runs_per_user: 1/h}"})
	limited := envelopesMetric("message", "stored", "limit")
	h.mention("one?")
	h.answerNext(replyWith("One."))
	h.posts(1)
	h.mention("two?")
	h.awaitMetric(sent, 2)
	h.mention("three?")
	h.awaitMetric(limited, 2)
	other := h.newMessage("<@U0BOT> and I?")
	other.User = "U0NORA"
	h.accept(other.Mention())
	h.answerNext(replyWith("You, too."))
	h.posts(2)
	h.clock.advance(time.Hour)
	h.mention("four?")
	asked := h.answerNext(replyWith("Four."))
	if got := asked.messages[len(asked.messages)-1].Content; !strings.HasSuffix(got, "four?") {
		t.Errorf("the agent was asked %q", got)
	}
	h.posts(3)
	h.awaitMetric(sent, 4)
	told := h.slack.Ephemerals()
	if len(told) != 1 || told[0].User != mara || told[0].ThreadTS != "" || !strings.Contains(told[0].Text, "limit") {
		t.Errorf("%+v", told)
	}
}

// TestWebShowsALimit proves that a thread of the web contains the notice, and that all senders
// together have the workspace's runs.
func TestWebShowsALimit(t *testing.T) {
	t.Parallel()
	h := open(t, plan{files: map[string]string{"workspaces/few.yaml": `
id: few
platform: web
agent: echo
web: {tokens: [{id: bridge, token: ` + anyToken + `2, name: Bridge, senders: any}]}
turns: {coalesce: 0s}
limits: {runs_per_workspace: 1/d}
`}})
	for i, sender := range []string{"nora", "olivia", "olivia"} {
		got := h.web(http.MethodPost, "few/messages", anyToken+"2", fmt.Sprintf(`{"thread_id":%q,"content":"hi","metadata":
			{"source":"web","sender_id":"web:%s","sender_display_name":"%[2]s","sender_type":"human"}}`, thread, sender))
		if got.status != http.StatusAccepted {
			t.Fatalf("message %d: %d %s", i, got.status, got.body)
		}
	}
	h.awaitMetric(`parley_envelopes_total{disposition="stored",kind="message",reason="limit",workspace="few"}`, 2)
	got := h.web(http.MethodGet, "few/threads/"+thread+"/messages", anyToken+"2", "")
	notices := 0
	for _, m := range decode[struct{ Messages []listed }](t, got.body).Messages {
		if m.Role == "system" && strings.Contains(m.Content, "limit") {
			notices++
		}
	}
	if notices != 1 {
		t.Errorf("%d notices in %s", notices, got.body)
	}
}

// TestAWorkspaceHasItsRuns proves that a workspace's run that may not begin yet waits, and
// that another workspace's run of the same agent does not.
func TestAWorkspaceHasItsRuns(t *testing.T) {
	t.Parallel()
	h := open(t, plan{acme: "max_concurrent: 1"})
	last := func(asked *modelRequest) string { return asked.messages[len(asked.messages)-1].Content }
	h.mention("one?")
	first := h.nextRequest()
	h.mention("two?")
	h.awaitMetric(envelopesMetric("message", "stored", "mention"), 2)
	h.postWeb("three?")
	if got := last(h.answerNext(replyWith("Three."))); !strings.HasSuffix(got, "three?") {
		t.Errorf("the agent was asked %q", got)
	}
	h.answer(first, replyWith("One."))
	if got := last(h.answerNext(replyWith("Two."))); !strings.HasSuffix(got, "two?") {
		t.Errorf("the agent was asked %q", got)
	}
	h.posts(2)
}

// replyFor streams a complete text, and reports its tokens.
func replyFor(text string, in, out int) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%s},\"finish_reason\":\"stop\"}]}\n\n", quoted(text))
		fmt.Fprintf(w, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":%d,\"completion_tokens\":%d}}\n\ndata: [DONE]\n\n", in, out)
	}
}

// TestTokensOfADay proves that a person whose tokens are used up is told once until when, that other people are answered, that the next day in
// the workspace's time zone has tokens again, and that an operator sees who has used them.
func TestTokensOfADay(t *testing.T) {
	t.Parallel()
	h := open(t, plan{acme: "time_zone: Europe/Vienna\nlimits: {tokens_per_user: 1000}"})
	limited := envelopesMetric("message", "stored", "limit")
	h.mention("one?")
	h.answerNext(replyFor("One.", 900, 99))
	h.posts(1)
	h.mention("two?")
	h.answerNext(replyFor("Two.", 900, 50)) // the last run may end above the limit
	h.posts(2)
	h.mention("three?")
	h.awaitMetric(limited, 1)
	h.mention("four?")
	h.awaitMetric(limited, 2)
	other := h.newMessage("<@U0BOT> and I?")
	other.User = "U0NORA"
	h.accept(other.Mention())
	h.answerNext(replyFor("You, too.", 10, 1))
	h.posts(3)
	h.awaitMetric(sent, 4)
	told := h.slack.Ephemerals()
	if len(told) != 1 || told[0].User != mara || !strings.Contains(told[0].Text, "limit of tokens is reached") || !strings.Contains(told[0].Text, "00:00 (Europe/Vienna)") {
		t.Errorf("%+v", told)
	}
	rows, err := h.daemon.Journal.Usage.Of(h.ctx, usage.Query{By: usage.ByPerson, Workspace: "acme"})
	slices.SortFunc(rows, func(a, b usage.Row) int { return strings.Compare(a.Key, b.Key) })
	want := []string{"slack:" + mara + ": 2 asked, 1800 in, 149 out", "slack:U0NORA: 1 asked, 10 in, 1 out"}
	var got []string
	for _, r := range rows {
		got = append(got, fmt.Sprintf("%s: %d asked, %d in, %d out", r.Key, r.Questions, r.TokensIn, r.TokensOut))
	}
	if slices.Sort(want); err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	h.clock.advance(24 * time.Hour)
	h.mention("five?")
	h.answerNext(replyFor("Five.", 1, 1))
	h.posts(4)
}
