package daemon_test

import (
	"net/http"
	"strings"
	"testing"

	"parley/adapters/slack/slacktest"
)

// callsTool has the model of a run call a tool, and returns its next request.
func (h *harness) callsTool(asked *modelRequest, name, arguments string) *modelRequest {
	h.t.Helper()
	h.answer(asked, callTool("", name, arguments))
	return h.nextRequest()
}

// lacks reports words that a text must not have.
func lacks(t *testing.T, what, text string, words ...string) {
	t.Helper()
	for _, word := range words {
		if strings.Contains(text, word) {
			t.Errorf("%s has %q: %s", what, word, text)
		}
	}
}

// TestNarrowedPolicyHoldsForStoredMessages: neither the input of an agent nor its tools have words of people whom the policy has
// refused since then, nor do the tools name positions of messages that the agent does not see.
func TestNarrowedPolicyHoldsForStoredMessages(t *testing.T) {
	t.Parallel()
	p := plan{helper: "tools: {read: workspace}", acme: "policy: {allow_users: [U0MAL, " + mara + ", U0OLIVIA]}", files: map[string]string{}}
	withReader(&p)
	h := &holder{later: &later{harness: open(t, p)}}
	h.slack.AddUser(slacktest.User{ID: mara, Name: "mara"})
	h.slack.SetChannel(slacktest.Channel{ID: "C0PRIVATE", Kind: slacktest.PrivateChannel, Name: "private", Members: []string{"U0OLIVIA"}})
	for range 8 {
		h.hears("C0PRIVATE", "group", "U0OLIVIA", "initech")
	}
	root := h.newMessage("quibble in the morning")
	root.User = "U0MAL"
	h.accept(root.Event())
	awaitTool(h.harness, func() bool {
		return len(h.callTool(deskToken, "search_messages", `{"workspace":"acme","query":"quibble"}`).Messages) == 1 &&
			len(h.callTool(deskToken, "search_messages", `{"workspace":"acme","query":"initech"}`).Messages) == 8
	})
	file := h.dir + "/workspaces/acme.yaml"
	write(t, file, strings.Replace(read(t, file), "[U0MAL, ", "[", 1))
	h.reload()
	h.accept(messageOf(h.putMessage("<@"+slacktest.BotUser+"> what is here?", inThreadOf(root.TS))).Mention())
	asked := h.nextRequest()
	lacks(t, "the input", asked.text(), "quibble", "U0MAL")
	for _, c := range []struct{ tool, arguments string }{
		{"read_thread", `{}`}, {"search_messages", `{"query":"quibble"}`}, {"search_messages", `{"query":"initech","limit":1}`},
		{"list_threads", `{"limit":1}`}, {"list_channels", `{}`}, {"find_person", `{"name":"U0MAL"}`}, {"find_person", `{"name":"slack:U0MAL"}`},
	} {
		asked = h.callsTool(asked, c.tool, c.arguments)
		lacks(t, c.tool+" "+c.arguments, asked.last(), "quibble", `slack:U0MAL`, "C0PRIVATE", `"content":"initech`, `"error"`)
		if c.tool == "search_messages" {
			same(t, asked.last(), `{"messages":[],"next":null}`)
		}
	}
	h.answer(asked, replyWith("Nothing."))
	h.posts(1)
}

// TestToolsShowWhatTheInputShows: a tool returns nothing from before a new context, and nothing that was kept out of memory.
func TestToolsShowWhatTheInputShows(t *testing.T) {
	t.Parallel()
	h := open(t, plan{helper: "tools: {read: thread}"})
	h.postWeb("my old secret is plover")
	h.answerNext(replyWith("I keep plover."))
	h.awaitReply("I keep plover.")
	h.postWeb("/new")
	h.ask("vervain is not for memory", `,"include_in_memory":false`, `"passive":true`)
	h.postWeb("what do you know?")
	asked := h.nextRequest()
	lacks(t, "the input", asked.text(), "plover", "vervain")
	for _, c := range []struct{ tool, arguments string }{{"read_thread", `{}`}, {"read_thread", `{"before":100}`}, {"search_messages", `{"query":"plover"}`}} {
		asked = h.callsTool(asked, c.tool, c.arguments)
		lacks(t, c.tool, asked.last(), "plover", "vervain", `"error"`)
	}
	h.answer(asked, replyWith("Nothing."))
	h.awaitReply("Nothing.")
}

// TestProgramReadsNoConversation: a program that may inject and gets the answers, and may not read, gets no word of a person's
// conversation by its question: the input and the tools have its own messages and the answers to them. With read it has all.
func TestProgramReadsNoConversation(t *testing.T) {
	t.Parallel()
	p := withInjectors(plan{helper: "tools: {read: workspace}"}, "acme", "")
	ours := p.files["workspaces/ours.yaml"]
	p.files["workspaces/ours.yaml"] = strings.Replace(ours, "injects: [acme], read: [acme]", "injects: [acme]", 1)
	h := open(t, p)
	h.slack.AddUser(slacktest.User{ID: mara, Name: "mara"})
	h.slack.SetChannel(slacktest.Channel{ID: "D0MARA", Kind: slacktest.DirectMessage, User: mara})
	m := h.newMessage("my password is plover")
	m.Channel, m.ChannelType = "D0MARA", "im"
	h.accept(m.Event())
	h.answerNext(replyWith("I see plover."))
	h.posts(1)
	const to = `,"to":{"user":"` + mara + `"},"mentioned":true`
	h.inject(http.StatusAccepted, "acme", "what was said here?", to)
	asked := h.nextRequest()
	lacks(t, "the input", asked.text(), "plover")
	for _, c := range []struct{ tool, arguments string }{{"read_thread", `{}`}, {"search_messages", `{"query":"plover"}`}, {"list_threads", `{}`}} {
		if c.tool == "list_threads" {
			continue // it is not offered
		}
		asked = h.callsTool(asked, c.tool, c.arguments)
		lacks(t, c.tool, asked.last(), "plover", `"error"`)
	}
	asked = h.callsTool(asked, "schedule_message", `{"prompt":"What was said here?","cron":"0 9 * * *"}`)
	if !strings.Contains(asked.last(), "may not read this thread") {
		t.Errorf("a schedule: %s", asked.last())
	}
	h.answer(asked, replyWith("Nothing that I know."))
	h.posts(2)
	h.inject(http.StatusAccepted, "acme", "and before?", to)
	asked = h.answerNext(replyWith("Nothing either."))
	lacks(t, "the second input", asked.text(), "plover")
	if got := asked.text(); !strings.Contains(got, "what was said here?") || !strings.Contains(got, "Nothing that I know.") {
		t.Errorf("the program's own messages are missing: %s", got)
	}
	h.posts(3)
	file := h.dir + "/workspaces/ours.yaml"
	write(t, file, strings.Replace(read(t, file), "injects: [acme]", "injects: [acme], read: [acme]", 1))
	h.reload()
	h.inject(http.StatusAccepted, "acme", "and now?", to)
	if got := h.answerNext(replyWith("All.")).text(); !strings.Contains(got, "plover") {
		t.Errorf("with the right to read: %s", got)
	}
	h.posts(4)
}

// TestReportsToProgramsQuestions: the report of a workstream that a program's question has begun gives the agent no more of a person's
// conversation than the question did.
func TestReportsToProgramsQuestions(t *testing.T) {
	t.Parallel()
	p := withInjectors(plan{helper: modelLead}, "acme", "")
	ours := p.files["workspaces/ours.yaml"]
	p.files["workspaces/ours.yaml"] = strings.Replace(ours, "injects: [acme], read: [acme]", "injects: [acme]", 1)
	h := open(t, p)
	h.slack.AddUser(slacktest.User{ID: mara, Name: "mara"})
	h.slack.SetChannel(slacktest.Channel{ID: "D0MARA", Kind: slacktest.DirectMessage, User: mara})
	m := h.newMessage("my password is plover")
	m.Channel, m.ChannelType = "D0MARA", "im"
	h.accept(m.Event())
	h.answerNext(replyWith("I see plover."))
	h.posts(1)
	h.inject(http.StatusAccepted, "acme", "have it looked up", `,"to":{"user":"`+mara+`"},"mentioned":true`)
	posted := 2
	asked := h.callsTool(h.nextRequest(), "launch_workstream", `{"task":"Say one.","agent":"echo","name":"books"}`)
	lacks(t, "the question's input", all(asked), "plover", `"error"`)
	if !strings.Contains(all(asked), "is completed") { // a report that comes during the run is in it
		h.answer(asked, replyWith("I have asked echo."))
		posted++
		asked = h.nextRequest()
	}
	lacks(t, "the report's input", all(asked), "plover")
	if got := all(asked); !strings.Contains(got, "is completed") || !strings.Contains(got, "have it looked up") {
		t.Errorf("the report's input is\n%s", got)
	}
	h.answer(asked, replyWith("It says one."))
	h.posts(posted)
}

// TestAgentSchedulesWhereItReads: the right to post in a place is none to be asked there, because the run of a schedule reads the
// conversation.
func TestAgentSchedulesWhereItReads(t *testing.T) {
	t.Parallel()
	h := openHolder(t, `, tools: {read: thread, post: [acme]}`, withReader)
	h.hears("C0OTHER", "channel", "U0OLIVIA", "elsewhere")
	other := h.threadOf("elsewhere")
	h.mention("remind them")
	<-h.runs
	token := <-h.tokens
	for tool, more := range map[string]string{"schedule_message": `,"prompt":"What was said?","cron":"0 9 * * *"`, "cancel_schedule": `,"id":"x"`} {
		same(t, h.callTool(token, tool, `{"thread_id":"`+other+`"`+more+`}`).fault, noThread)
	}
}

// TestErrorsQuoteNoConversation: the words with which an agent's server refuses a request may quote the input. Operators get them of
// a known room, and of no other conversation; there the log has them at debug alone.
func TestErrorsQuoteNoConversation(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.slack.SetChannel(slacktest.Channel{ID: "D0MARA", Kind: slacktest.DirectMessage, User: mara})
	refuses := func(word string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			http.Error(w, `{"error":{"message":"I cannot parse your text: my password is `+word+`"}}`, http.StatusBadRequest)
		}
	}
	m := h.newMessage("hello")
	m.Channel, m.ChannelType = "D0MARA", "im"
	h.accept(m.Event())
	h.answerNext(refuses("plover"))
	h.awaitMetric(`parley_runs_total{agent="helper",outcome="failed"}`, 1)
	aside := h.newMessage("an aside")
	aside.ChannelType = "channel"
	h.accept(aside.Event())
	h.mention("hello")
	h.answerNext(refuses("vervain"))
	h.awaitMetric(`parley_runs_total{agent="helper",outcome="failed"}`, 2)
	runs, err := h.operate().Runs(h.ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	var all string
	for _, run := range runs.Items {
		all += run.Error + "\n"
	}
	lacks(t, "the list of runs", all, "plover")
	for line := range strings.SplitSeq(h.log.String(), "\n") {
		if !strings.Contains(line, `"level":"DEBUG"`) {
			lacks(t, "the log", line, "plover")
		}
	}
	if !strings.Contains(all, "vervain") || strings.Count(all, "400 Bad Request") != 2 {
		t.Errorf("the list of runs: %s", all)
	}
}
