package threads

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"parley/adapters/web/exchange"
	"parley/adapters/web/payload"
	"parley/assembly/runinput"
	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
)

// historySnapshot is a day of a thread's history. ThreadID and Day are nil if there is none.
type historySnapshot struct {
	Scope    string           `json:"scope"` // history_day
	ThreadID *string          `json:"threadId"`
	Day      *string          `json:"day"` // YYYY-MM-DD, in UTC
	HasMore  bool             `json:"hasMore"`
	Next     *int64           `json:"next,omitempty"` // beforeSeq of the rest of the day; absent if this is all of it
	Messages []historyMessage `json:"messages"`
}

// historyMessage is a message of a user, an agent or a tool. A field that its role does not
// have is nil.
type historyMessage struct {
	ID       string           `json:"id"`
	Seq      int64            `json:"seq"` // thread_seq
	Role     string           `json:"role"`
	Content  string           `json:"content"`
	HTML     string           `json:"html,omitempty"`  // of an agent's content
	Parts    []historyPart    `json:"parts,omitempty"` // of a user's message with files or blocks
	URL      *json.RawMessage `json:"url,omitempty"`
	UISchema *json.RawMessage `json:"uiSchema,omitempty"`
	Time     time.Time        `json:"timestamp"`
}

// historyPart is a text or a file.
type historyPart struct {
	Type     string  `json:"type"`           // text or binary
	Text     *string `json:"text,omitempty"` // nil for a file
	MimeType string  `json:"mimeType,omitempty"`
	URL      string  `json:"url,omitempty"`
	ID       string  `json:"id,omitempty"`
	Filename string  `json:"filename,omitempty"`
}

// history responds with the newest day of a thread before a day: GET
// /api/v1/agent/history?threadId=&before=YYYY-MM-DD&beforeSeq=&html=. Without threadId, the thread is the
// one with the newest message among those in which the caller takes part. A long day comes in pages: each is read with the next of the one before.
func (c call) history(w http.ResponseWriter, r *http.Request) error {
	id, before := strings.ToLower(r.URL.Query().Get("threadId")), time.Time{}
	if id != "" && !payload.IsUUID(id) {
		return runinput.NoThread
	}
	if given := r.URL.Query().Get("before"); given != "" {
		var err error
		if before, err = time.Parse(time.DateOnly, given); err != nil || before.IsZero() {
			return event.FieldErrors{{Field: "before", Message: "must be a day such as 2026-03-15"}}
		}
	}
	var faults event.FieldErrors
	beforeSeq := exchange.SeqOf(r, "beforeSeq", &faults)
	c.html = exchange.HTMLOf(r, &faults)
	if len(faults) > 0 {
		return faults
	}
	end, err := c.Streams.Begin(r.Context(), c.Owner())
	if err != nil {
		return err
	}
	defer end()
	day, err := c.snapshot(r.Context(), id, before, beforeSeq)
	if err != nil {
		return err
	}
	return exchange.Respond(w, http.StatusOK, day)
}

// snapshot returns the newest day of a thread before a time and a thread_seq.
func (c call) snapshot(ctx context.Context, id string, before time.Time, beforeSeq int64) (historySnapshot, error) {
	snapshot := historySnapshot{Scope: "history_day", Messages: []historyMessage{}}
	t, err := c.threadOrNewest(ctx, id)
	if err != nil || t == nil {
		return snapshot, err
	}
	snapshot.ThreadID = &t.ID
	day, err := c.Messages.HistoryDay(ctx, t, before, beforeSeq)
	if err != nil || day.Begin.IsZero() {
		return snapshot, err
	}
	snapshot.Day, snapshot.HasMore = new(day.Begin.Format(time.DateOnly)), day.More
	snapshot.Next = given(day.Next)
	for i := range day.Messages {
		m, err := c.historyMessage(ctx, &day.Messages[i])
		if err != nil {
			return snapshot, err
		}
		snapshot.Messages = append(snapshot.Messages, m)
	}
	return snapshot, nil
}

// threadOrNewest returns the thread with an id, or if that is empty the one that was active last among those in which the caller
// takes part; nil for none. A thread that the caller may not see is storage.ErrNotFound.
func (c call) threadOrNewest(ctx context.Context, id string) (*threads.Thread, error) {
	if id == "" {
		t, err := c.Places.LastActive(ctx, c.Workspace, string(c.Actor))
		if errors.Is(err, storage.ErrNotFound) {
			return nil, nil
		}
		return &t, err
	}
	t, err := c.seenThread(ctx, id)
	return &t, err
}

// null is the value of a field that a role has and a message does not.
var null = json.RawMessage("null")

// historyMessage returns a message in the form of its role. It signs new links to its files.
func (c call) historyMessage(ctx context.Context, m *messages.Message) (historyMessage, error) {
	var metadata struct {
		MessageID string          `json:"message_id"`
		Stage     string          `json:"stage"`
		UISchema  json.RawMessage `json:"uiSchema"`
		Blocks    json.RawMessage `json:"content_blocks"`
	}
	_ = json.Unmarshal(m.Metadata, &metadata) // values of other types are left out
	out := historyMessage{ID: m.UUID, Seq: m.Seq, Role: m.View().Role, Content: Display(m), Time: m.CreatedAt.UTC()}
	if metadata.MessageID != "" {
		out.ID = metadata.MessageID
	}
	if out.Role == "user" {
		out.URL = &null
		return out, c.addParts(ctx, &out, m, metadata.Blocks)
	}
	if metadata.Stage == "tool_execution" {
		out.Role = "tool"
	}
	if c.html {
		out.HTML = exchange.HTML(out.Content)
	}
	if out.UISchema = &null; bytes.HasPrefix(metadata.UISchema, []byte("{")) {
		out.UISchema = &metadata.UISchema
	}
	return out, nil
}
