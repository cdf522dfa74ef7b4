package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"parley/adapters/web/exchange"
	"parley/adapters/web/files"
	"parley/adapters/web/payload"
	webthreads "parley/adapters/web/threads"
	"parley/assembly/runinput"
	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/threads"
)

// taskAccepted is the answer to a run.
type taskAccepted struct {
	TaskID   string    `json:"taskId"` // the id of the run's message
	ThreadID string    `json:"threadId"`
	RunID    string    `json:"runId"`
	Created  time.Time `json:"created"`
}

// postRun takes a run of the agent run protocol: POST /api/v1/agent/runs with a RunAgentInput.
// The run with the same runId in the same thread is the same run.
func (c call) postRun(w http.ResponseWriter, r *http.Request, raw []byte) error {
	b, err := c.readRun(r.Context(), raw)
	if err == nil {
		err = c.Threads.MayAsk(w, r, c.Workspace, b)
	}
	if err == nil {
		err = c.Threads.Claim(r, c.Call, b.ThreadID)
	}
	if err != nil {
		return err
	}
	s, err := c.Threads.Send(r, c.Workspace, b)
	if errors.Is(err, webthreads.ErrLimit) { // other messages were recorded since MayAsk; this one was not
		w.Header().Set("Retry-After", "1")
		err = exchange.Fail(http.StatusTooManyRequests, "limit", err.Error())
	}
	if err == nil {
		err = refused(s)
	}
	if err != nil {
		return err
	}
	out := taskAccepted{TaskID: s.ID, ThreadID: b.ThreadID, RunID: b.RunID, Created: c.Threads.Now().UTC()}
	if s.Message != nil {
		out.TaskID, out.Created = s.Message.UUID, s.Message.CreatedAt
	}
	return exchange.Respond(w, s.Status(), out)
}

// refused returns an error if a message was recorded but starts no run.
func refused(s webthreads.Accepted) error {
	if m := s.Message; m != nil && m.Trigger != messages.TriggerRun && m.Run == "" {
		return exchange.Fail(http.StatusForbidden, "refused", "the workspace's policy starts no run for this message: "+m.Reason)
	}
	return nil
}

// readRun reads a RunAgentInput and returns the message of its user. Its error is a
// runinput.Fault, event.FieldErrors, or the store's.
func (c call) readRun(ctx context.Context, raw []byte) (b payload.Body, err error) {
	in, err := runinput.Read(raw)
	var faults event.FieldErrors
	if errors.As(err, &faults); payload.Unreadable(faults) {
		return b, faults
	}
	if err := in.Check(len(raw)); err != nil { // before the faults of other members
		return b, err
	}
	faults.Check(!threads.IsDerived(in.ThreadID), "threadId", payload.DerivedID)
	if len(faults) > 0 {
		return b, faults
	}
	if !c.Token.Instructs() {
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
func (c call) readFiles(ctx context.Context, blocks []runinput.Block) (list []payload.Attachment, err error) {
	var faults event.FieldErrors
	for i, block := range blocks {
		if block.Type == "text" {
			continue
		}
		field := fmt.Sprintf("messages[0].content[%d].url", i)
		file, err := c.Threads.Storage.Linked(ctx, c.Workspace, block.URL)
		switch {
		case errors.Is(err, files.ErrNoLink), errors.Is(err, files.ErrExpired):
			faults = append(faults, event.FieldError{Field: field, Message: err.Error()})
			continue
		case err != nil:
			return nil, err
		case !strings.HasPrefix(file.MimeType, "image/"): // by its bytes
			return nil, runinput.NoImage
		}
		file.Name = cmp.Or(block.Filename, file.Name)
		list = append(list, file)
	}
	faults.Check(len(list) <= payload.MaxAttachments, "messages[0].content", fmt.Sprintf("must have at most %d files", payload.MaxAttachments))
	return list, faults.Err()
}

// runMetadata returns the metadata of the user's message of a run: the documents' keys, with
// the place of its first file, and its blocks.
func (c call) runMetadata(runID string, user *runinput.Message, files []payload.Attachment) []byte {
	m := event.Metadata{Extra: []event.Extra{{Key: event.KeyRunID, Value: payload.Encode(runID)}, {Key: event.KeyMessageID, Value: payload.Encode(user.ID)}}}
	if blocks := user.Content.Blocks; blocks != nil {
		m.Extra = append(m.Extra, event.Extra{Key: event.KeyBlocks, Value: payload.LayoutOf(blocks)})
	}
	metadata := c.AsCaller(event.Human).Own(m)
	if len(files) > 0 {
		metadata = payload.NameFile(metadata, files[0])
	}
	return metadata
}
