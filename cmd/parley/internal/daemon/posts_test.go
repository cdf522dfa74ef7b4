package daemon_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/adapters/bluebubbles/bluebubblestest"
	"parley/adapters/discord/discordtest"
	"parley/adapters/slack/slacktest"
	"parley/cmd/parley/internal/operator"
)

// posterToken is the token of a program that may post in all of acme, guild and home, and roomToken of one that may
// post in one channel of acme.
const (
	posterToken = "canary-post-71c0aa-5e2d9b04"
	roomToken   = "canary-room-0b5d1e-93fa27c6"
)

// withPosters adds a web workspace whose tokens may post in other workspaces.
func withPosters(p plan, workspaces string) plan {
	files := map[string]string{"workspaces/ours.yaml": `
id: ours
platform: web
agent: helper
web:
  tokens:
    - {id: poster, token: ` + posterToken + `, name: Poster, posts: [` + workspaces + `]}
    - {id: one, token: ` + roomToken + `, name: One, posts: ["acme:` + room + `"]}
    - {id: none, token: ` + ownToken + `, name: None, senders: any}
`}
	for name, content := range p.files {
		files[name] = content
	}
	p.files = files
	return p
}

// postState is the state of a post, as the API returns it.
type postState struct {
	ID       string `json:"id"`
	State    string `json:"state"`
	ThreadID string `json:"thread_id"`
	PostID   string `json:"post_id"`
	Link     string `json:"link"`
	Error    string `json:"error"`
}

// speak posts as a program, and returns the accepted post.
func (h *harness) speak(workspace, to, content, more string) postState {
	h.t.Helper()
	got := h.web(http.MethodPost, workspace+"/posts", posterToken, `{"to":{`+to+`},"content":`+quoted(content)+more+`}`)
	if got.status != http.StatusAccepted {
		h.t.Fatalf("%d %s\n%s", got.status, got.body, h.log)
	}
	return decode[postState](h.t, got.body)
}

// stateOf asks for the state of a post.
func (h *harness) stateOf(id, token string) answer {
	h.t.Helper()
	request, err := http.NewRequestWithContext(h.ctx, http.MethodGet, h.url+"/api/v1/posts/"+id, nil)
	if err == nil {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	return h.send(request, err)
}

// text returns all that the model got.
func (r *modelRequest) text() (all string) {
	for _, m := range r.messages {
		all += m.Role + ": " + m.Content + "\n"
	}
	return all
}

// awaitPost waits until a post has a state, and returns it.
func (h *harness) awaitPost(id, state string) postState {
	h.t.Helper()
	for {
		got := h.stateOf(id, posterToken)
		p := decode[postState](h.t, got.body)
		if p.State == state {
			return p
		}
		if !h.poll() {
			h.t.Fatalf("%d %s\n%s%s", got.status, got.body, h.state(), h.log)
		}
		h.clock.advance(time.Second) // for posts that are tried again
	}
}

// TestProgramPostsOnSlack: a post to a channel is posted once by its key, with its file. A reply in its thread
// needs no mention, and the agent sees the post. The program goes on in that thread. The state is the same after
// a restart.
func TestProgramPostsOnSlack(t *testing.T) {
	t.Parallel()
	h := open(t, withPosters(plan{}, "acme"))
	h.slack.Put(slacktest.Post{Channel: room, User: mara, Text: "morning", TS: "1700000000.000100"})
	to := `"channel":"` + room + `"`
	first := h.speak("acme", to, "**Rain** today", `,"key":"summary","attachments":[{"name":"rain.txt","mime_type":"text/plain","data":"MTBtbQ=="}]`)
	again := h.speak("acme", to, "**Rain** today", `,"key":"summary"`)
	same(t, again.ID, first.ID)
	sent := h.awaitPost(first.ID, "sent")
	posts := h.posts(2)
	if posts[0].ThreadTS != "" || !strings.Contains(posts[0].Text+posts[0].Markdown, "Rain") || len(posts[1].Files) != 1 || len(posts) != 2 {
		t.Fatalf("%+v", posts)
	}
	same(t, sent.PostID, room+"/"+posts[0].TS)
	why, err := h.operate().Why(h.ctx, sent.Link)
	if err != nil || !slices.ContainsFunc(why.Steps, func(s operator.LifeStep) bool { return s.What == "sent" && s.Link == sent.Link }) ||
		!slices.ContainsFunc(why.Steps, func(s operator.LifeStep) bool { return strings.HasSuffix(s.Detail, ", posted by ours/poster") }) {
		t.Errorf("%v %+v", err, why)
	}

	reply := func(text string) {
		t.Helper()
		m := h.newMessage(text)
		h.accept(inner(`{"type":"message","user":"` + mara + `","ts":"` + m.TS + `","text":"` + text + `","thread_ts":"` + posts[0].TS + `",
			"parent_user_id":"` + slacktest.BotUser + `","channel":"` + room + `","channel_type":"channel"}`))
	}
	reply("how much?")
	asked := h.nextRequest()
	if !strings.Contains(asked.text(), "**Rain** today") || strings.Count(asked.text(), "Rain") != 1 {
		t.Errorf("the agent does not see the post once: %s", asked.text())
	}
	h.answer(asked, replyWith("Ten."))
	same(t, h.posts(3)[2].ThreadTS, posts[0].TS)

	more := h.speak("acme", `"thread_id":"`+sent.ThreadID+`"`, "It has stopped.", "")
	h.awaitPost(more.ID, "sent")
	same(t, h.posts(4)[3].ThreadTS, posts[0].TS)
	reply("and now?")
	asked = h.answerNext(replyWith("Sun."))
	if !strings.Contains(asked.text(), "It has stopped.") {
		t.Errorf("the agent does not see the post in the thread: %s", asked.text())
	}
	h.posts(5)
	h.restart()
	same(t, h.awaitPost(first.ID, "sent"), sent)
	same(t, h.speak("acme", to, "**Rain** today", `,"key":"summary"`).ID, first.ID)
	same(t, len(h.posts(5)), 5)
}

// TestAnUnclearPostHoldsBackItsProgramAlone: while the call of a program's post at the top of a channel hangs, and then has no clear
// result, the posts of other programs there are sent. Those of the program itself follow in their order.
func TestAnUnclearPostHoldsBackItsProgramAlone(t *testing.T) {
	t.Parallel()
	fake, made := calls("chat.postMessage")
	h := open(t, withPosters(plan{fake: fake}, "acme"))
	held := make(chan struct{})
	h.slack.Script("chat.postMessage", slacktest.Fault{Hold: held, Cut: true, Effect: true})
	to := `"channel":"` + room + `"`
	first := h.speak("acme", to, "first", "")
	h.call(made)
	second := h.speak("acme", to, "second", "")
	other := func(content string) {
		t.Helper()
		got := h.web(http.MethodPost, "acme/posts", roomToken, `{"to":{`+to+`},"content":"`+content+`"}`)
		same(t, got.status, http.StatusAccepted)
		h.clock.advance(2 * time.Second) // the channel has a pace; the outcome of the first post is asked for after 15 seconds
		id := decode[postState](t, got.body).ID
		for decode[postState](t, h.stateOf(id, roomToken).body).State != "sent" {
			if !h.poll() {
				t.Fatalf("%s is not sent\n%s%s", content, h.state(), h.log)
			}
		}
		for _, p := range []postState{first, second} {
			if state := decode[postState](t, h.stateOf(p.ID, posterToken).body).State; state == "sent" {
				t.Errorf("the post of the other program is %s before %s", state, content)
			}
		}
	}
	other("while it hangs")
	close(held)
	h.posts(2)
	other("while it is unclear")
	h.awaitPost(first.ID, "sent")
	h.awaitPost(second.ID, "sent")
	posts := h.posts(4)
	texts := []string{}
	for _, p := range posts {
		same(t, p.ThreadTS, "")
		texts = append(texts, p.Text)
	}
	same(t, texts, []string{"while it hangs", "first", "while it is unclear", "second"})
	for _, p := range []postState{first, second} { // people answer in a thread under each post
		sent := h.awaitPost(p.ID, "sent")
		h.speak("acme", `"thread_id":"`+sent.ThreadID+`"`, "below "+sent.PostID, "")
	}
	for len(h.slack.Posts()) < 6 && h.poll() {
		h.clock.advance(time.Second)
	}
	for _, p := range h.posts(6)[4:] {
		same(t, "below "+room+"/"+p.ThreadTS, p.Text)
	}
}

// TestDoorsOfPosts: a wrong token, a foreign workspace, a foreign channel, a thread of another workspace and the state
// of a foreign post are closed.
func TestDoorsOfPosts(t *testing.T) {
	t.Parallel()
	h := open(t, withPosters(plan{}, "acme"))
	post := func(workspace, token, to string) int {
		t.Helper()
		return h.web(http.MethodPost, workspace+"/posts", token, `{"to":{`+to+`},"content":"hello","key":"k"}`).status
	}
	to := `"channel":"` + room + `"`
	same(t, post("acme", "", to), http.StatusUnauthorized)
	same(t, post("acme", anyToken, to), http.StatusUnauthorized)
	same(t, post("acme", ownToken, to), http.StatusUnauthorized) // of another workspace, without the right
	same(t, post("ours", ownToken, to), http.StatusForbidden)
	same(t, post("other", posterToken, to), http.StatusUnauthorized)
	same(t, post("acme", roomToken, `"channel":"C0OTHER"`), http.StatusForbidden)
	same(t, post("acme", roomToken, `"user":"`+mara+`"`), http.StatusForbidden)
	same(t, post("acme", posterToken, `"thread_id":"`+thread+`"`), http.StatusNotFound)
	same(t, post("acme", posterToken, `"channel":"garden"`), http.StatusBadRequest)
	same(t, post("acme", posterToken, `"channel":"`+room+`","user":"`+mara+`"`), http.StatusBadRequest)
	same(t, len(h.slack.Posts()), 0)
	same(t, post("acme", roomToken, to), http.StatusAccepted)
	p := h.speak("acme", `"channel":"C0OTHER"`, "elsewhere", "")
	same(t, h.stateOf(p.ID, roomToken).status, http.StatusNotFound)
	same(t, h.stateOf(p.ID, anyToken).status, http.StatusUnauthorized)
}

// TestProgramPostsOnDiscord: a post to a channel, and a reply to it that needs no mention.
func TestProgramPostsOnDiscord(t *testing.T) {
	t.Parallel()
	const guild, shed, mara = "700000000000000001", "700000000000000002", "700000000000000005"
	fake, err := discordtest.Start(discordtest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fake.Close() })
	fake.AddGuild(discordtest.Guild{ID: guild})
	fake.AddUser(discordtest.User{ID: mara, Username: "Mara"})
	fake.SetChannel(discordtest.Channel{ID: shed, Guild: guild})
	h := open(t, withPosters(plan{files: map[string]string{"workspaces/guild.yaml": `
id: guild
platform: discord
agent: helper
discord: {token: ` + discordtest.Token + `, api_url: "` + fake.URL() + `", post_rate: 0, preview: off, working: off, commands: false}
turns: {coalesce: 0s}
`}}, "guild"))
	h.awaitState("guild", "up")
	p := h.awaitPost(h.speak("guild", `"channel":"`+shed+`"`, "**Rain** today", "").ID, "sent")
	sent, err := fake.Await(h.ctx, 1)
	if err != nil || sent[0].Channel != shed || sent[0].Content != "**Rain** today" || sent[0].ID != p.PostID[strings.LastIndexByte(p.PostID, '/')+1:] {
		t.Fatalf("%v %+v", err, sent)
	}
	fake.Say(discordtest.Message{Channel: shed, Author: mara, Content: "how much?", ReplyTo: sent[0].ID})
	asked := h.answerNext(replyWith("Ten."))
	if !strings.Contains(asked.text(), "**Rain** today") {
		t.Errorf("the agent does not see the post: %s", asked.text())
	}
}

// TestProgramPostsOnIMessage: a post to a chat, and the answer to a message about it.
func TestProgramPostsOnIMessage(t *testing.T) {
	t.Parallel()
	m := openIMessage(t, bluebubblestest.Options{}, "", "home")
	m.says(noraChat, nora, "hello")
	m.sent(1)
	m.awaitPost(m.speak("home", `"channel":"`+noraChat+`"`, "Rain today", "").ID, "sent")
	m.awaitPost(m.speak("home", `"user":"`+nora+`"`, "Sun now", "").ID, "sent")
	if sent := m.sent(3); sent[2].Chat != noraChat || sent[2].Text != "Sun now" || sent[1].Chat != noraChat || sent[1].Text != "Rain today" {
		t.Fatalf("%+v", sent)
	}
}

// TestProgramPostsInAWebThread: a post with a file is a message of its thread at once, once by its key. Its link is the
// page of the thread. A web workspace has no channels and no persons to write to.
func TestProgramPostsInAWebThread(t *testing.T) {
	t.Parallel()
	h := open(t, withPosters(plan{main: "public_url: https://parley.example.com/"}, "ours"))
	made := decode[struct{ ID string }](t, h.chat(http.StatusCreated, http.MethodPost, "", posterToken, `{"mode":"open"}`))
	const file = `,"key":"rain","attachments":[{"name":"rain.txt","mime_type":"text/plain","data":"MTBtbQ=="}]`
	to := `"thread_id":"` + made.ID + `"`
	p := h.speak("ours", to, "**Rain** today", file)
	same(t, h.speak("ours", to, "**Rain** today", file).ID, p.ID)
	got := h.awaitPost(p.ID, "sent")
	same(t, got, postState{ID: p.ID, State: "sent", ThreadID: made.ID, Link: "https://parley.example.com/chat?thread=" + made.ID})
	list := decode[struct {
		Messages []struct {
			ID, Role, Content string
			Attachments       []struct{ Name string }
		}
	}](t, h.web(http.MethodGet, "ours/threads/"+made.ID+"/messages", posterToken, "").body)
	if len(list.Messages) != 1 || list.Messages[0].ID != p.ID || list.Messages[0].Content != "**Rain** today" || len(list.Messages[0].Attachments) != 1 {
		t.Errorf("%+v", list)
	}
	h.web(http.MethodPost, "ours/messages", posterToken, `{"thread_id":"`+made.ID+`","content":"how much?"}`)
	if asked := h.answerNext(replyWith("Ten.")); !strings.Contains(asked.text(), "**Rain** today") {
		t.Errorf("the agent does not see the post: %s", asked.text())
	}
	for _, to := range []string{`"user":"` + mara + `"`, `"channel":"` + room + `"`} {
		same(t, h.web(http.MethodPost, "ours/posts", posterToken, `{"to":{`+to+`},"content":"hello"}`).status, http.StatusBadRequest)
	}
}
