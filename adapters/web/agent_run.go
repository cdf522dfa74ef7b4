package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"parley/adapters/web/payload"
	"parley/assembly/runinput"
	"parley/ingest/event"
	"parley/ingest/journal"
)

// agentRoutes returns the routes of the agent run protocol.
func agentRoutes() []Route {
	run := Route{Right: ForUsers, TooLarge: runinput.TooLarge.Error(), Take: Call.PostRun}
	runs := run
	run.Pattern, runs.Pattern = "POST /api/v1/agent/run", "POST /api/v1/agent/runs"
	return []Route{run, runs, {Pattern: "GET /api/v1/agent/history", Serve: Call.History}}
}

// taskAccepted is the answer to a run.
type taskAccepted struct {
	TaskID   string    `json:"taskId"` // the id of the run's message
	ThreadID string    `json:"threadId"`
	RunID    string    `json:"runId"`
	Created  time.Time `json:"created"`
}

// PostRun takes a run of the agent run protocol: POST /api/v1/agent/runs with a RunAgentInput.
// The run with the same runId in the same thread is the same run.
func (c Call) PostRun(w http.ResponseWriter, r *http.Request, raw []byte) error {
	b, err := c.readRun(r.Context(), raw)
	if err == nil {
		err = c.mayAsk(w, r, b)
	}
	if err == nil {
		err = c.claimThread(r, b.ThreadID)
	}
	if err != nil {
		return err
	}
	s, err := c.send(r, b)
	if errors.Is(err, errLimit) { // other messages were recorded since mayAsk; this one was not
		w.Header().Set("Retry-After", "1")
		err = fail(http.StatusTooManyRequests, "limit", err.Error())
	}
	if err == nil {
		err = s.refused()
	}
	if err != nil {
		return err
	}
	out := taskAccepted{TaskID: s.id, ThreadID: b.ThreadID, RunID: b.RunID, Created: c.Now().UTC()}
	if s.message != nil {
		out.TaskID, out.Created = s.message.UUID, s.message.CreatedAt
	}
	return respond(w, s.status(), out)
}

// refused returns an error if the message was recorded but starts no run.
func (s accepted) refused() error {
	if m := s.message; m != nil && m.Trigger != journal.TriggerRun && m.Run == "" {
		return fail(http.StatusForbidden, "refused", "the workspace's policy starts no run for this message: "+m.Reason)
	}
	return nil
}

// claimThread makes a thread of the caller's, unless there is one with the id. Another caller's
// thread is journal.ErrNotFound.
func (c Call) claimThread(r *http.Request, id string) error {
	t, _, err := c.makeThread(r, id, journal.Thread{Mode: journal.ModeOpen})
	if err == nil {
		err = c.sees(r.Context(), &t)
	}
	return err
}

// readRun reads a RunAgentInput and returns the message of its user. Its error is a
// runinput.Fault, event.FieldErrors, or the store's.
func (c Call) readRun(ctx context.Context, raw []byte) (b payload.Body, err error) {
	in, err := runinput.Read(raw)
	var faults event.FieldErrors
	if errors.As(err, &faults); payload.Unreadable(faults) {
		return b, faults
	}
	if err := in.Check(len(raw)); err != nil { // before the faults of other members
		return b, err
	}
	faults.Check(!journal.IsDerived(in.ThreadID), "threadId", payload.DerivedID)
	if len(faults) > 0 {
		return b, faults
	}
	if !c.Token.instructs() {
		in.MarkInstructions()
	}
	b = payload.Body{MessageID: payload.NewID(), TokenID: c.Token.ID, ThreadID: in.ThreadID, RunID: in.RunID, RunInput: in.Rest}
	user := in.Messages[0]
	b.Content = user.Content.Text
	if user.Content.Blocks != nil {
		b.Content = payload.TextsOf(user.Content.Blocks)
		b.Attachments, err = c.readFiles(ctx, user.Content.Blocks)
	}
	b.Metadata = c.runMetadata(in.RunID, &user, b.Attachments)
	return b, err
}

// readFiles returns the files that the links of a user message name.
func (c Call) readFiles(ctx context.Context, blocks []runinput.Block) (files []payload.Attachment, err error) {
	var faults event.FieldErrors
	for i, block := range blocks {
		if block.Type == "text" {
			continue
		}
		field := fmt.Sprintf("messages[0].content[%d].url", i)
		file, err := c.linked(ctx, block.URL)
		switch {
		case errors.Is(err, errNoLink), errors.Is(err, errExpired):
			faults = append(faults, event.FieldError{Field: field, Message: err.Error()})
			continue
		case err != nil:
			return nil, err
		case !strings.HasPrefix(file.MimeType, "image/"): // by its bytes
			return nil, runinput.NoImage
		}
		file.Name = cmp.Or(block.Filename, file.Name)
		files = append(files, file)
	}
	faults.Check(len(files) <= payload.MaxAttachments, "messages[0].content", fmt.Sprintf("must have at most %d files", payload.MaxAttachments))
	return files, faults.Err()
}

// The keys of a message's metadata that the documents define.
const (
	runIDKey     = "run_id"
	messageIDKey = "message_id"
)

// runMetadata returns the metadata of the user's message of a run: the documents' keys, with
// the place of its first file, and its blocks.
func (c Call) runMetadata(runID string, user *runinput.Message, files []payload.Attachment) []byte {
	m := event.Metadata{Extra: []event.Extra{{Key: runIDKey, Value: payload.Encode(runID)}, {Key: messageIDKey, Value: payload.Encode(user.ID)}}}
	if blocks := user.Content.Blocks; blocks != nil {
		m.Extra = append(m.Extra, event.Extra{Key: payload.BlocksKey, Value: payload.LayoutOf(blocks)})
	}
	metadata := caller{token: c.Token, sender: string(c.Actor), kind: event.Human}.own(m)
	if len(files) > 0 {
		metadata = payload.NameFile(metadata, files[0])
	}
	return metadata
}
