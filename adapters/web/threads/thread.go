package threads

import (
	"net/http"
	"strings"
	"time"

	"parley/adapters/web/access"
	"parley/adapters/web/exchange"
	"parley/adapters/web/payload"
	"parley/ingest/event"
	"parley/ingest/journal/threads"
)

// chatThread is a thread in a response.
type chatThread struct {
	ID        string             `json:"id"`
	Mode      threads.ThreadMode `json:"mode"`
	CreatedAt time.Time          `json:"created_at"`
}

func viewThread(t *threads.Thread) chatThread { return chatThread{t.ID, t.Mode, t.CreatedAt} }

// postThread makes a thread of the caller's: POST /api/v1/chat/threads {"mode","participants"}. A
// thread with participants is for them alone. Without the key, every agent outside Parley may use it.
func (c call) postThread(w http.ResponseWriter, r *http.Request, raw []byte) error {
	n := threads.Thread{Mode: threads.ModeOpen}
	var others []payload.Actor
	faults := payload.Members(raw, func(m event.Extra) string {
		switch {
		case m.Key == "mode":
			return readMode(m.Value, &n.Mode)
		case m.Key == "participants" && string(m.Value) == "null":
			return ""
		case m.Key == "participants":
			n.Closed = true
			return c.readParticipants(m.Value, &others)
		}
		return "is not a key of a thread; the known keys are mode and participants"
	})
	if len(faults) > 0 {
		return faults
	}
	t, _, err := c.makeThread(r, payload.NewID(), n, others...)
	if err != nil {
		return err
	}
	return exchange.Respond(w, http.StatusCreated, viewThread(&t))
}

// patchThread changes the mode of a thread that the caller has made: PATCH
// /api/v1/chat/threads/{thread_id} {"mode"}
func (c call) patchThread(w http.ResponseWriter, r *http.Request, raw []byte) error {
	t, err := c.madeThread(r)
	if err != nil {
		return err
	}
	t.Mode = ""
	faults := payload.Members(raw, func(m event.Extra) string {
		if m.Key != "mode" {
			return "is not a key of this request; the only one is mode"
		}
		return readMode(m.Value, &t.Mode)
	})
	if len(faults) == 0 {
		faults.Check(t.Mode != "", "mode", "is required")
	}
	if len(faults) > 0 {
		return faults
	}
	if err := c.Places.SetThreadMode(r.Context(), &t, t.Mode); err != nil {
		return err
	}
	return exchange.Respond(w, http.StatusOK, viewThread(&t))
}

// readMode reads the mode of a thread. It returns the fault's text, or "".
func readMode(value []byte, into *threads.ThreadMode) string {
	fault := payload.Text(value, (*string)(into))
	if fault == "" && *into != threads.ModeOpen && *into != threads.ModeInvocationOnly {
		fault = "must be open or invocation_only"
	}
	return fault
}

// makeThread makes the thread n of the caller's, unless there is one with the id.
func (c call) makeThread(r *http.Request, id string, n threads.Thread, others ...payload.Actor) (t threads.Thread, made bool, err error) {
	n.Workspace, n.Key, n.MadeBy = c.Workspace, payload.ThreadKey(c.Workspace, id), string(c.Actor)
	names := make([]string, len(others))
	for i, actor := range others {
		names[i] = string(actor)
	}
	return c.Places.MakeThread(r.Context(), event.Web, id, n, names...)
}

// listOwnThreads responds with a page of the threads in which the caller takes part, the newest first.
// An agent gets the threads of all callers of its workspace that are not for others alone: GET /api/v1/chat/threads?before=&limit=
func (c call) listOwnThreads(w http.ResponseWriter, r *http.Request) error {
	var faults event.FieldErrors
	limit := exchange.LimitOf(r, &faults)
	if len(faults) > 0 {
		return faults
	}
	threads, err := c.Places.ThreadsOf(r.Context(), c.Workspace, string(c.Actor), c.Actor.IsAgent(), r.URL.Query().Get("before"), limit)
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
	return exchange.Respond(w, http.StatusOK, map[string]any{"threads": list, "next": next})
}

// getCaller responds with the caller, as the messages that it sends name it: GET /api/v1/chat/caller
func (c call) getCaller(w http.ResponseWriter, _ *http.Request) error {
	return exchange.Respond(w, http.StatusOK, map[string]string{"id": string(c.Actor), "name": c.Token.Name})
}

// getThread responds with a thread, its participants and its newest thread_seq, which is 0
// without messages: GET /api/v1/chat/threads/{thread_id}
func (c call) getThread(w http.ResponseWriter, r *http.Request) error {
	t, err := c.thread(r)
	if err != nil {
		return err
	}
	participants, err := c.participants(r.Context(), &t)
	if err != nil {
		return err
	}
	return exchange.Respond(w, http.StatusOK, struct {
		chatThread
		Participants []participant `json:"participants"`
		Newest       int64         `json:"thread_seq"`
	}{viewThread(&t), participants, t.Newest})
}

// thread returns the thread that a request names, if the caller may read and write it.
func (c call) thread(r *http.Request) (threads.Thread, error) {
	id := strings.ToLower(r.PathValue("thread_id"))
	if !payload.IsUUID(id) {
		return threads.Thread{}, event.FieldErrors{{Field: "thread_id", Message: "must be a UUID"}}
	}
	return c.seenThread(r.Context(), id)
}

// madeThread is thread for a request that only the caller who made the thread may send.
func (c call) madeThread(r *http.Request) (threads.Thread, error) {
	t, err := c.thread(r)
	if err == nil && t.MadeBy != string(c.Actor) {
		err = exchange.Fail(http.StatusForbidden, "forbidden", "only the caller who made the thread may do this")
	}
	return t, err
}

// Claim makes a thread of the caller by, unless there is one with the id. Another caller's
// thread is storage.ErrNotFound.
func (a API) Claim(r *http.Request, by access.Call, id string) error {
	c := a.of(by)
	t, _, err := c.makeThread(r, id, threads.Thread{Mode: threads.ModeOpen})
	if err == nil {
		err = c.sees(r.Context(), &t)
	}
	return err
}
