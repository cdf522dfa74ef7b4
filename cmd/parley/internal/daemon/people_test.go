package daemon_test

import (
	"net/http"
	"strings"
	"testing"

	"parley/ingest/event"
	"parley/ingest/journal/postgres/postgrestest"
)

const newsPath = "/api/v1/chat/stream"

// sharedThread makes a thread of Olivia's with participants and returns its path.
func (h *harness) sharedThread(mode string, participants ...string) string {
	h.t.Helper()
	body := `{"mode":"` + mode + `","participants":["` + strings.Join(participants, `","`) + `"]}`
	return "/" + decode[struct{ ID string }](h.t, h.chat(http.StatusCreated, "POST", "", ownToken, body)).ID
}

// TestParticipants checks who may read and write a thread of several people, and the rights to change the participants.
func TestParticipants(t *testing.T) {
	everyChat(t, func(t *testing.T, h *harness) {
		thread := h.sharedThread("invocation_only", bobID)
		const hi = `{"content":"hi"}`
		h.chat(http.StatusCreated, "POST", thread+"/messages", bobToken, hi)
		golden(t, h.chat(http.StatusOK, "GET", thread, bobToken, ""), `{"id":"ID","mode":"invocation_only","created_at":"TIME","thread_seq":1,
			"participants":[{"id":"`+oliviaID+`","name":"Olivia"},{"id":"`+echoID+`","name":"echo"},{"id":"`+bobID+`","name":"Bob"}]}`)
		if list := h.chat(http.StatusOK, "GET", "", bobToken, ""); !strings.Contains(list, thread[1:]) {
			t.Errorf("Bob's threads are %s", list)
		}
		run := `{"threadId":"` + thread[1:] + `","runId":"run-bob","messages":[{"id":"m","role":"user","content":"and me?"}]}`
		same(t, h.request("POST", "/api/v1/agent/runs", bobToken, "application/json", run).status, http.StatusAccepted)
		h.messages(thread, 3)
		for _, token := range []string{ownToken, bobToken} {
			same(t, h.request("GET", "/runs"+thread+"/run-bob/updates", token, "", "").status, http.StatusOK)
		}
		same(t, h.request("GET", "/runs"+thread+"/run-bob/updates", scoutToken, "", "").status, http.StatusNotFound)

		// Others: an agent that the thread does not name is one of them.
		none := h.chat(http.StatusNotFound, "GET", thread, scoutToken, "")
		same(t, h.chat(http.StatusNotFound, "POST", thread+"/agent-messages", scoutToken, hi), none)
		same(t, h.web("GET", "ours/threads"+thread+"/messages", scoutToken, "").status, http.StatusNotFound)
		if list := h.chat(http.StatusOK, "GET", "", scoutToken, ""); strings.Contains(list, thread[1:]) {
			t.Errorf("the agent's threads are %s", list)
		}
		h.chat(http.StatusForbidden, "POST", thread+"/participants", bobToken, `{"actor":"`+scoutID+`"}`)
		h.chat(http.StatusForbidden, "PATCH", thread, bobToken, `{"mode":"open"}`)
		h.chat(http.StatusForbidden, "DELETE", thread+"/participants/"+oliviaID, bobToken, "")
		h.chat(http.StatusConflict, "DELETE", thread+"/participants/"+oliviaID, ownToken, "")

		golden(t, h.chat(http.StatusCreated, "POST", thread+"/participants", ownToken, `{"actor":"`+strings.ToUpper(scoutID)+`"}`), `{"id":"`+scoutID+`","name":"Scout"}`)
		h.chat(http.StatusCreated, "POST", thread+"/agent-messages", scoutToken, hi)
	})
}

// TestParticipantsChange checks that who leaves a thread, or is removed, reads nothing of it any more, on
// no open stream either.
func TestParticipantsChange(t *testing.T) {
	everyChat(t, func(t *testing.T, h *harness) {
		thread := h.sharedThread("invocation_only", bobID)
		live := h.hear(thread+"/stream", bobToken, "")
		h.chat(http.StatusCreated, "POST", thread+"/messages", ownToken, `{"content":"one"}`)
		same(t, live.heard(), "1 one")
		h.chat(http.StatusCreated, "POST", thread+"/participants", ownToken, `{"actor":"`+scoutID+`"}`)
		golden(t, h.chat(http.StatusOK, "POST", thread+"/participants", ownToken, `{"actor":"`+scoutID+`"}`), `{"id":"`+scoutID+`","name":"Scout"}`)
		h.chat(http.StatusCreated, "POST", thread+"/agent-messages", scoutToken, `{"content":"two"}`)
		same(t, live.heard(), "2 two")
		h.chat(http.StatusNoContent, "DELETE", thread+"/participants/"+bobID, ownToken, "")
		h.chat(http.StatusCreated, "POST", thread+"/messages", ownToken, `{"content":"three"}`)
		for live.lines.Scan() {
			if line := live.lines.Text(); strings.HasPrefix(line, "data") {
				t.Errorf("a removed participant reads %s", line)
			}
		}
		h.chat(http.StatusNotFound, "GET", thread, bobToken, "")
		h.chat(http.StatusNotFound, "DELETE", thread+"/participants/"+bobID, ownToken, "")
		h.chat(http.StatusNoContent, "DELETE", thread+"/participants/"+scoutID, scoutToken, "")
		h.chat(http.StatusNotFound, "GET", thread+"/messages", scoutToken, "")
		h.chat(http.StatusBadRequest, "POST", thread+"/messages", ownToken, `{"content":"Bob?","mentions":["`+bobID+`"]}`)
	})
}

// TestModeChanges checks that the mode of a thread holds for its next message.
func TestModeChanges(t *testing.T) {
	everyChat(t, func(t *testing.T, h *harness) {
		thread := h.newThread("invocation_only")
		h.chat(http.StatusCreated, "POST", thread+"/messages", ownToken, `{"content":"one"}`)
		golden(t, h.chat(http.StatusOK, "PATCH", thread, ownToken, `{"mode":"open"}`), `{"id":"ID","mode":"open","created_at":"TIME"}`)
		h.chat(http.StatusCreated, "POST", thread+"/messages", ownToken, `{"content":"two"}`)
		if third := h.messages(thread, 3)[2]; !strings.Contains(third, echoID) {
			t.Errorf("the third message is %s", third)
		}
		for body, field := range map[string]string{`{}`: "mode", `{"mode":"closed"}`: "mode", `{"mode":"open","title":"x"}`: "title"} {
			same(t, decode[rejected](t, h.chat(http.StatusBadRequest, "PATCH", thread, ownToken, body)).Error.Fields[0].Field, field)
		}
	})
}

// TestFaultyParticipants compares the fields and texts of the faults, for each body.
func TestFaultyParticipants(t *testing.T) {
	t.Parallel()
	h := open(t, chatPlan("sqlite:data/parley.db"))
	thread := h.newThread("open")
	const unknown = "agent:6ba7b810-9dad-41d1-80b4-00c04fd430c8"
	for name, c := range map[string]struct{ path, body, fault string }{
		"no list":          {"", `{"participants":"` + bobID + `"}`, `participants must be a list such as ["user:6ba7b810-9dad-41d1-80b4-00c04fd430c8"]`},
		"no actor":         {"", `{"participants":["` + bobID + `","bob"]}`, "participants [1] must be user:<uuid> or agent:<uuid>"},
		"an unknown agent": {"", `{"participants":["` + unknown + `"]}`, "participants [0] names no agent of this workspace"},
		"too many":         {"", `{"participants":["` + strings.Repeat(bobID+`","`, 100) + bobID + `"]}`, "participants must be at most 100"},
		"nobody":           {thread + "/participants", `{}`, "actor is required"},
		"a name":           {thread + "/participants", `{"actor":"bob"}`, "actor must be user:<uuid> or agent:<uuid>"},
		"a list":           {thread + "/participants", `{"actor":["` + bobID + `"]}`, "actor must be a string"},
		"another key":      {thread + "/participants", `{"actor":"` + bobID + `","role":"owner"}`, "role is not a key of this request; the only one is actor"},
		"no agent at all":  {thread + "/participants", `{"actor":"` + unknown + `"}`, "actor names no agent of this workspace"},
		"a stranger":       {thread + "/messages", `{"content":"x","mentions":["` + oliviaID + `","` + bobID + `"]}`, "mentions [1] names nobody who takes part in this thread"},
	} {
		f := decode[rejected](t, h.chat(http.StatusBadRequest, "POST", c.path, ownToken, c.body)).Error.Fields
		if got := f[0].Field + " " + f[0].Message; len(f) != 1 || got != c.fault {
			t.Errorf("%s: %q, want %q", name, got, c.fault)
		}
	}
}

// TestNews checks that a caller learns of new threads and of mentions, in order and once, also after it
// comes back, and of nothing that it may not read.
func TestNews(t *testing.T) {
	everyChat(t, func(t *testing.T, h *harness) {
		news := func(token, last string) *listener { return &listener{h.t, h.stream(newsPath, token, last)} }
		bob, scout := news(bobToken, ""), news(scoutToken, "")
		thread, own := h.sharedThread("invocation_only", bobID), h.newThread("invocation_only")
		same(t, bob.heard(), "1 thread ")
		say := func(thread, content, mentions string) {
			h.chat(http.StatusCreated, "POST", thread+"/messages", ownToken, `{"content":"`+content+`","mentions":[`+mentions+`]}`)
		}
		say(thread, "to all", "")
		say(thread, "Bob?", `"`+bobID+`","`+bobID+`","`+echoID+`"`)
		same(t, bob.heard(), "2 mention Bob?")
		say(own, "Scout?", `"`+scoutID+`"`)
		same(t, scout.heard(), "1 mention Scout?")
		for _, status := range []int{http.StatusCreated, http.StatusOK} {
			h.chat(status, "POST", thread+"/messages", ownToken, `{"content":"Bob!","client_message_id":"m","mentions":["`+bobID+`"]}`)
		}
		same(t, bob.heard(), "3 mention Bob!")
		same(t, news(bobToken, "2").heard(), "3 mention Bob!")
		same(t, (&listener{h.t, h.stream(newsPath+"?after=1", bobToken, "")}).heard(), "2 mention Bob?")

		h.messages(thread, 4)
		changes := h.hear(thread+"/stream", ownToken, "4")
		h.alter(thread[1:], 2, event.Event{Kind: event.KindDelete})
		same(t, changes.heard(), "delete ")
		again := news(bobToken, "1")
		same(t, again.heard(), "3 mention Bob!")
		h.chat(http.StatusNoContent, "DELETE", thread+"/participants/"+bobID, bobToken, "")
		h.chat(http.StatusCreated, "POST", own+"/participants", ownToken, `{"actor":"`+bobID+`"}`)
		same(t, []string{bob.heard(), again.heard(), news(bobToken, "").heard()}, []string{"4 thread ", "4 thread ", "4 thread "})
		if got := h.request("GET", newsPath+"?after=x", bobToken, "", ""); got.status != http.StatusBadRequest {
			t.Errorf("a position that is none: %d %s", got.status, got.body)
		}
	})
}

// TestNewsOverNodes checks that a caller hears on one node what happens on another one.
func TestNewsOverNodes(t *testing.T) {
	t.Parallel()
	store := postgrestest.URL(t)
	one, two := open(t, chatPlan(store)), open(t, chatPlan(store))
	bob := &listener{t, two.stream(newsPath, bobToken, "")}
	thread := one.sharedThread("invocation_only", bobID)
	same(t, bob.heard(), "1 thread ")
	one.chat(http.StatusCreated, "POST", thread+"/messages", ownToken, `{"content":"Bob?","mentions":["`+bobID+`"]}`)
	same(t, bob.heard(), "2 mention Bob?")
}

// TestNewsEndWithTheToken changes a token, whose ticket and stream end.
func TestNewsEndWithTheToken(t *testing.T) {
	t.Parallel()
	const rotated = "canary-bob-4470aa-8812cd90"
	p := chatPlan("sqlite:data/parley.db")
	h := open(t, p)
	ticket := func() string {
		return decode[struct{ Ticket string }](t, h.request(http.MethodPost, "/api/v1/tickets", bobToken, "application/json", `{"path":"`+newsPath+`"}`).body).Ticket
	}
	bob, unused := &listener{t, h.stream(newsPath+"?ticket="+ticket(), "", "")}, ticket()
	h.sharedThread("open", bobID)
	same(t, bob.heard(), "1 thread ")
	h.rotate(p, bobToken, rotated)
	same(t, h.get(newsPath+"?ticket="+unused).status, http.StatusUnauthorized)
	h.sharedThread("open", bobID)
	for bob.lines.Scan() {
		if line := bob.lines.Text(); strings.HasPrefix(line, "data") {
			t.Errorf("after the rotation, the stream has %s", line)
		}
	}
}
