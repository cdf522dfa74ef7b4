package daemon_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"parley/adapters/slack/slacktest"
)

// holder is a daemon whose agent helper takes each run and uses the tools by the run's token.
type holder struct {
	*later
	tokens chan string // of the runs
}

// openHolder starts a holder whose helper has a setting tools.
func openHolder(t *testing.T, settings string, change ...func(*plan)) *holder {
	t.Helper()
	l, tokens := &later{runs: make(chan string, 16)}, make(chan string, 16)
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			RunID string `json:"run_id"`
		}
		if !takesInput(t, w, r, &body) {
			return
		}
		w.WriteHeader(http.StatusAccepted)
		l.runs <- body.RunID
		tokens <- r.Header.Get("X-Parley-Run-Token")
	}))
	t.Cleanup(hook.Close)
	l.plan = plan{files: map[string]string{"parley.yaml": `
listen: 127.0.0.1:0
shutdown: 30s
agents:
  - {id: helper, kind: webhook, url: "` + hook.URL + `", secret: ` + laterSecret + settings + `}
  - {id: echo, kind: echo}
`}}
	for _, f := range change {
		f(&l.plan)
	}
	l.harness = open(t, l.plan)
	return &holder{l, tokens}
}

// hears delivers a message that is no question.
func (h *holder) hears(channel, kind, user, text string) {
	h.t.Helper()
	m := h.newMessage(text)
	m.Channel, m.ChannelType, m.User = channel, kind, user
	h.accept(m.Event())
}

// threadOf returns the id of the thread that begins with a text.
func (h *holder) threadOf(text string) string {
	h.t.Helper()
	for {
		for _, thread := range h.callTool(deskToken, "list_threads", `{"workspace":"acme"}`).Threads {
			if thread.Title == text {
				return thread.ThreadID
			}
		}
		if !h.poll() {
			h.t.Fatalf("no thread %q\n%s", text, h.log)
		}
	}
}

// withReader adds the token deskToken, which reads acme.
func withReader(p *plan) {
	for name, content := range deskFiles {
		p.files[name] = content
	}
}

const (
	noThread = "the workspace has no such thread"
	noList   = "there is no such workspace, or this token reads only threads that it names"
	noPost   = "there is no such workspace, or this token may not post in it"
)

// TestRunTokenEndsWithItsRun: the token of a run reads the run's thread, also after a restart, until the run has ended. Another
// one is refused.
func TestRunTokenEndsWithItsRun(t *testing.T) {
	t.Parallel()
	h := openHolder(t, "", withReader)
	h.hears("C0OTHER", "channel", mara, "elsewhere")
	other := h.threadOf("elsewhere")
	h.mention("are we on?")
	run, token := <-h.runs, <-h.tokens
	own := h.threadOf("<@U0BOT> are we on?")
	reads := func() {
		t.Helper()
		if got := h.callTool(token, "read_thread", `{"thread_id":"`+own+`"}`); got.fault != "" || len(got.Messages) != 1 || got.Messages[0].SenderID != "slack:"+mara {
			t.Errorf("%+v", got)
		}
		if got := h.callTool(token, "list_threads", `{}`); len(got.Threads) != 1 || got.Threads[0].ThreadID != own {
			t.Errorf("%+v", got)
		}
		if got := h.callTool(token, "list_channels", `{}`); len(got.Channels) > 1 || len(got.Channels) == 1 && got.Channels[0].ID != room {
			t.Errorf("%+v", got)
		}
		for _, c := range []struct{ tool, arguments, want string }{
			{"read_thread", `{"thread_id":"` + other + `"}`, noThread},
			{"read_thread", `{"workspace":"ours","thread_id":"` + own + `"}`, noThread},
			{"search_messages", `{"query":"elsewhere","thread_id":"` + other + `"}`, noThread},
			{"find_person", `{"name":"mara"}`, "needs read: workspace"},
			{"post_message", `{"channel":"` + room + `","content":"hello"}`, noPost},
			{"react", `{"message_id":"` + own + `","emoji":"eyes"}`, noPost},
		} {
			if got := h.callTool(token, c.tool, c.arguments); !strings.Contains(got.fault, c.want) {
				t.Errorf("%s %s: %+v, want %q", c.tool, c.arguments, got, c.want)
			}
		}
	}
	reads()
	h.restart()
	reads()
	const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	ask := func(token, path string) answer {
		return h.request(http.MethodPost, path, token, "application/json", list, "Accept", "application/json, text/event-stream")
	}
	forged := token[:len(token)-1] + map[bool]string{true: "0", false: "1"}[token[len(token)-1] != '0']
	for _, wrong := range []string{forged, token[:len(token)-1], "parley-run-", "parley-run-" + run, strings.Replace(token, run[:1], "f", 1)} {
		same(t, ask(wrong, "/mcp").status, http.StatusUnauthorized)
	}
	same(t, ask(token, "/api/v1/tickets").status, http.StatusUnauthorized) // it is good for the tools alone
	same(t, h.reply(run, token, `{"content":"Yes."}`).status, http.StatusUnauthorized)
	same(t, h.reply(run, laterSecret, `{"content":"Yes."}`).status, http.StatusAccepted)
	h.posts(1)
	if got := ask(token, "/mcp"); got.status != http.StatusUnauthorized || !strings.Contains(got.body, "the run of this token has ended") {
		t.Errorf("after the run: %d %s", got.status, got.body)
	}
	if log := h.log.String(); strings.Contains(log, token) {
		t.Error("the log has the token")
	}
}

// TestRunSeesWhatItsAskerSees: a run's agent reads as far as its setting says and the person who asks can see.
func TestRunSeesWhatItsAskerSees(t *testing.T) {
	t.Parallel()
	const guest = "U0GUEST"
	for name, c := range map[string]struct {
		settings, asker string
		want            []string
	}{
		"thread":    {"", mara, []string{"own"}},
		"channel":   {", tools: {read: channel}", mara, []string{"own", "same channel"}},
		"workspace": {", tools: {read: workspace}", mara, []string{"own", "same channel", "public", "private with mara", "direct with mara"}},
		"stranger":  {", tools: {read: workspace}", guest, []string{"own", "same channel"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := openHolder(t, c.settings, withReader)
			h.slack.AddUser(slacktest.User{ID: mara, Name: "mara"})
			h.slack.AddUser(slacktest.User{ID: guest, Name: "guest", Team: "T0OTHER"})
			places := []struct{ text, channel, kind, user string }{
				{"same channel", room, "channel", "U0OLIVIA"}, {"public", "C0PUBLIC", "channel", "U0OLIVIA"},
				{"private with mara", "C0MARA", "group", mara}, {"foreign private", "C0PRIVATE", "group", "U0OLIVIA"},
				{"direct with mara", "D0MARA", "im", mara}, {"foreign direct", "D0OLIVIA", "im", "U0OLIVIA"}, {"foreign group", "G0OTHERS", "mpim", "U0OLIVIA"},
			}
			kinds := map[string]slacktest.Kind{"channel": slacktest.PublicChannel, "group": slacktest.PrivateChannel, "im": slacktest.DirectMessage, "mpim": slacktest.GroupMessage}
			threads := map[string]string{}
			for _, p := range places {
				channel := slacktest.Channel{ID: p.channel, Kind: kinds[p.kind], Name: strings.ToLower(p.channel), Members: []string{p.user}}
				if p.kind == "im" {
					channel.User, channel.Members = p.user, nil
				}
				h.slack.SetChannel(channel)
				h.hears(p.channel, p.kind, p.user, p.text)
				if p.kind == "im" { // it is a question
					run := <-h.runs
					<-h.tokens
					same(t, h.reply(run, laterSecret, `{"content":"Yes."}`).status, http.StatusAccepted)
				}
				threads[h.threadOf(p.text)] = p.text
			}
			m := h.newMessage("<@" + slacktest.BotUser + "> own")
			m.User = c.asker
			h.accept(m.Mention())
			<-h.runs
			token := <-h.tokens
			threads[h.threadOf("<@U0BOT> own")] = "own"
			awaitTool(h.harness, func() bool {
				return len(h.callTool(deskToken, "search_messages", `{"workspace":"acme","query":"own"}`).Messages) == 1
			})

			var read, listed, found []string
			for id, text := range threads {
				if got := h.callTool(token, "read_thread", `{"thread_id":"`+id+`"}`); got.fault == "" {
					read = append(read, text)
				} else if !strings.Contains(got.fault, noThread) {
					t.Error(got.fault)
				}
				last := text[strings.LastIndexByte(text, ' ')+1:]
				for _, m := range h.callTool(token, "search_messages", `{"query":"`+last+`"}`).Messages {
					if text := threads[m.ThreadID]; m.Role == "user" && !slices.Contains(found, text) {
						found = append(found, text)
					}
				}
			}
			for _, thread := range h.callTool(token, "list_threads", `{}`).Threads {
				listed = append(listed, threads[thread.ThreadID])
			}
			slices.Sort(c.want)
			for what, got := range map[string][]string{"read": read, "listed": listed, "found": found} {
				slices.Sort(got)
				if !slices.Equal(got, c.want) {
					t.Errorf("%s: %q, want %q", what, got, c.want)
				}
			}
			var channels []string
			for _, channel := range h.callTool(token, "list_channels", `{}`).Channels {
				for _, p := range places {
					if p.channel == channel.ID {
						channels = append(channels, p.text)
					}
				}
			}
			want := slices.DeleteFunc(c.want, func(text string) bool { return text == "own" })
			if len(want) == 0 {
				want = []string{"same channel"} // its own
			}
			slices.Sort(channels)
			same(t, channels, want)
		})
	}
}

// TestRunPostsWhereItsAgentMay: the setting tools.post of an agent, also when it has changed during the run.
func TestRunPostsWhereItsAgentMay(t *testing.T) {
	t.Parallel()
	h := openHolder(t, `, tools: {post: ["acme:`+room+`"]}`, withReader)
	h.mention("tell them")
	<-h.runs
	token := <-h.tokens
	arguments := `{"workspace":"acme","channel":"` + room + `","content":"hello","key":"k"}`
	first := h.callTool(token, "post_message", arguments)
	if first.fault != "" || first.ID == "" {
		t.Fatalf("%+v", first)
	}
	same(t, h.posts(1)[0].Text, "hello")
	same(t, h.callTool(token, "post_message", arguments).ID, first.ID)
	if got := h.callTool(token, "post_message", `{"workspace":"acme","channel":"C0OTHER","content":"hello"}`); !strings.Contains(got.fault, "may not post there") {
		t.Errorf("%+v", got)
	}
	file := h.dir + "/parley.yaml"
	write(t, file, strings.Replace(h.plan.files["parley.yaml"], `, tools: {post: ["acme:`+room+`"]}`, "", 1))
	h.reload()
	if got := h.callTool(token, "post_message", arguments); !strings.Contains(got.fault, noPost) {
		t.Errorf("after the setting has gone: %+v", got)
	}
}

// TestAWorkstreamStaysInItsThread: whatever its agent may do elsewhere, a workstream reads its own thread alone and posts nowhere.
func TestAWorkstreamStaysInItsThread(t *testing.T) {
	t.Parallel()
	h := openHolder(t, `, workstreams: {agents: [helper]}, tools: {read: workspace, post: [acme]}`, withReader)
	h.mention("who is right?")
	run, token := <-h.runs, <-h.tokens
	parent := h.threadOf("<@U0BOT> who is right?")
	if got := h.callTool(token, "read_thread", `{"thread_id":"`+parent+`"}`); got.fault != "" {
		t.Errorf("%+v", got)
	}
	same(t, h.request(http.MethodPost, "/runs/"+run+"/workstreams", laterSecret, "application/json", `{"task":"Look around.","agent":"helper"}`).status, http.StatusCreated)
	<-h.runs
	child := <-h.tokens
	own := h.callTool(child, "list_threads", `{}`).Threads
	if len(own) != 1 {
		t.Fatalf("%+v", own)
	}
	if got := h.callTool(child, "read_thread", `{"thread_id":"`+own[0].ThreadID+`"}`); got.fault != "" || len(got.Messages) != 1 {
		t.Errorf("%+v", got)
	}
	if got := h.callTool(child, "search_messages", `{"query":"right"}`); got.fault != "" || len(got.Messages) != 0 {
		t.Errorf("%+v", got)
	}
	for _, c := range []struct{ tool, arguments, want string }{
		{"read_thread", `{"thread_id":"` + parent + `"}`, noThread},
		{"find_person", `{"name":"mara"}`, "needs read: workspace"},
		{"post_message", `{"channel":"` + room + `","content":"hello"}`, noPost},
		{"post_message", `{"thread_id":"` + parent + `","content":"hello"}`, noPost},
		{"schedule_message", `{"prompt":"hello","cron":"0 9 * * *"}`, ""},
	} {
		if got := h.callTool(child, c.tool, c.arguments); got.fault == "" || !strings.Contains(got.fault, c.want) {
			t.Errorf("%s %s: %+v, want %q", c.tool, c.arguments, got, c.want)
		}
	}
}

// TestRemovedTokenReadsNothing: a token of the configuration ends with its configuration, for the tools too.
func TestRemovedTokenReadsNothing(t *testing.T) {
	t.Parallel()
	h := open(t, plan{files: deskFiles})
	if got := h.callTool(deskToken, "list_threads", `{"workspace":"acme"}`); got.fault != "" {
		t.Fatalf("%+v", got)
	}
	file := h.dir + "/workspaces/desk.yaml"
	write(t, file, strings.Replace(deskFiles["workspaces/desk.yaml"], ", read: [acme]", "", 1))
	h.reload()
	if got := h.callTool(deskToken, "list_threads", `{"workspace":"acme"}`); !strings.Contains(got.fault, noList) {
		t.Errorf("%+v", got)
	}
	write(t, file, strings.Replace(deskFiles["workspaces/desk.yaml"], deskToken, "another-token-of-the-desk", 1))
	h.reload()
	if _, err := h.tools(deskToken); err == nil || !strings.Contains(err.Error(), "Unauthorized") {
		t.Errorf("%v", err)
	}
}
