package web

import (
	"context"
	"net/http"
	"strings"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal"
)

// chatRoutes returns the routes of threads and their messages.
func chatRoutes() []Route {
	const thread = "/api/v1/chat/threads/{thread_id}"
	return []Route{
		{Pattern: "POST /api/v1/chat/threads", Right: ForUsers, Take: Call.PostThread},
		{Pattern: "GET /api/v1/chat/threads", Serve: Call.ListOwnThreads},
		{Pattern: "GET " + thread, Serve: Call.GetThread},
		{Pattern: "POST " + thread + "/messages", Right: ForUsers, Take: Call.PostChatMessage},
		{Pattern: "POST " + thread + "/agent-messages", Right: ForAgents, Take: Call.PostChatMessage},
		{Pattern: "GET " + thread + "/messages", Serve: Call.ListChatMessages},
		{Pattern: "GET " + thread + "/stream", Serve: Call.StreamThread},
	}
}

// chatThread is a thread in a response.
type chatThread struct {
	ID        string             `json:"id"`
	Mode      journal.ThreadMode `json:"mode"`
	CreatedAt time.Time          `json:"created_at"`
}

func viewThread(t *journal.Thread) chatThread { return chatThread{t.ID, t.Mode, t.CreatedAt} }

// PostThread makes a thread of the caller's: POST /api/v1/chat/threads {"mode"}
func (c Call) PostThread(w http.ResponseWriter, r *http.Request, raw []byte) error {
	mode := journal.ModeOpen
	faults := readMembers(raw, func(m event.Extra) string {
		if m.Key != "mode" {
			return "is not a key of a thread; the only one is mode"
		}
		fault := text(m.Value, (*string)(&mode))
		if fault == "" && mode != journal.ModeOpen && mode != journal.ModeInvocationOnly {
			fault = "must be open or invocation_only"
		}
		return fault
	})
	if len(faults) > 0 {
		return faults
	}
	t, _, err := c.makeThread(r, newID(), mode)
	if err != nil {
		return err
	}
	return respond(w, http.StatusCreated, viewThread(&t))
}

// makeThread makes a thread of the caller's, unless there is one with the id.
func (c Call) makeThread(r *http.Request, id string, mode journal.ThreadMode) (t journal.Thread, made bool, err error) {
	return c.Store.MakeThread(r.Context(), event.Web, id, journal.Thread{
		Workspace: c.Workspace, Key: ThreadKey(c.Workspace, id), Mode: mode, MadeBy: string(c.Actor),
	})
}

// ListOwnThreads responds with a page of the caller's threads, the newest first. An agent gets the
// threads of all callers of its workspace: GET /api/v1/chat/threads?before=&limit=
func (c Call) ListOwnThreads(w http.ResponseWriter, r *http.Request) error {
	var faults event.FieldErrors
	limit := limitOf(r, &faults)
	if len(faults) > 0 {
		return faults
	}
	madeBy := string(c.Actor)
	if c.Actor.IsAgent() {
		madeBy = ""
	}
	threads, err := c.Store.ThreadsMadeBy(r.Context(), c.Workspace, madeBy, r.URL.Query().Get("before"), limit)
	if err != nil {
		return err
	}
	list := make([]chatThread, len(threads))
	for i := range threads {
		list[i] = viewThread(&threads[i])
	}
	var next *string
	if len(threads) == limit {
		next = given(threads[limit-1].Cursor())
	}
	return respond(w, http.StatusOK, map[string]any{"threads": list, "next": next})
}

// participant is a user or an agent of a thread.
type participant struct {
	ID   Actor  `json:"id"`
	Name string `json:"name"`
}

// GetThread responds with a thread, its participants and its newest thread_seq, which is 0
// without messages: GET /api/v1/chat/threads/{thread_id}
func (c Call) GetThread(w http.ResponseWriter, r *http.Request) error {
	t, err := c.thread(r)
	if err != nil {
		return err
	}
	senders, err := c.Store.Senders(r.Context(), &t)
	if err != nil {
		return err
	}
	return respond(w, http.StatusOK, struct {
		chatThread
		Participants []participant `json:"participants"`
		Newest       int64         `json:"thread_seq"`
	}{viewThread(&t), c.participants(&t, senders), t.Newest})
}

// participants returns the thread's owner, the agents that may be mentioned in it, and the
// other senders of its newest messages.
func (c Call) participants(t *journal.Thread, senders []journal.Sender) []participant {
	list, known := []participant{}, map[Actor]bool{}
	add := func(id Actor, name string) {
		if id != "" && !known[id] {
			known[id] = true
			list = append(list, participant{id, name})
		}
	}
	add(Actor(t.MadeBy), c.nameOf(Actor(t.MadeBy)))
	for _, id := range c.Agents {
		add(agentActor(id), id)
	}
	for _, token := range c.config.Tokens {
		if actor := token.actor(c.Workspace); actor.IsAgent() {
			add(actor, token.Name)
		}
	}
	for _, s := range senders {
		m, _ := event.ReadMetadata(s.Metadata) // an unreadable one has no name
		if s.Author != journal.BySystem {
			add(c.sender(s.ID, s.Author), m.SenderDisplayName)
		}
	}
	return list
}

// nameOf returns the name of the actor's token; empty if it has none any more.
func (c Call) nameOf(actor Actor) string {
	if actor == c.Actor {
		return c.Token.Name
	}
	for _, token := range c.config.Tokens {
		if token.actor(c.Workspace) == actor {
			return token.Name
		}
	}
	return ""
}

// thread returns the thread that a request names, if the caller may see it. An agent may see each
// thread of its workspace.
func (c Call) thread(r *http.Request) (journal.Thread, error) {
	id := strings.ToLower(r.PathValue("thread_id"))
	if !isUUID(id) {
		return journal.Thread{}, event.FieldErrors{{Field: "thread_id", Message: "must be a UUID"}}
	}
	return c.seenThread(r.Context(), id)
}

// seenThread returns the thread with an id, if the caller may see it, or else
// journal.ErrNotFound.
func (c Call) seenThread(ctx context.Context, id string) (journal.Thread, error) {
	t, err := c.Store.Thread(ctx, c.Workspace, id)
	if err == nil && !c.sees(&t) {
		err = journal.ErrNotFound
	}
	return t, err
}

// sees reports whether the caller may see a thread of its workspace.
func (c Call) sees(t *journal.Thread) bool { return c.Actor.IsAgent() || t.MadeBy == string(c.Actor) }
