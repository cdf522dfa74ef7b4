package runs

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
	"parley/ingest/stream"
)

// deliver stores the posts of the run's end. They take over the posts of its live
// previews; deliveries remove the other previews and the sign of work.
func (e *endRunTx) deliver(posts []outbox.Post, send *outbox.Send) {
	var shown []outbox.Delivery
	if e.run.Previews > 0 {
		shown = outbox.Previews(e.Txn, e.run.ID)
	}
	for i, post := range posts {
		d := e.run.delivery(outbox.KindPost, post, storage.Instant(e.now))
		d.Key = outbox.Key(e.run.ID, i)
		if !post.Alone && post.File == nil && post.Buttons == nil && post.Card == nil && len(shown) > 0 {
			d.Replaces, shown = &shown[0], shown[1:]
		}
		if i == 0 && send != nil && send.Every == 0 {
			e.Begun = d
			d.SendBy = storage.Instant(e.now).Add(send.Timeout)
		}
		outbox.Add(e.Txn, d, int64(i), d == e.Begun)
	}
	for i := range shown {
		d := e.run.delivery(outbox.KindRemove, shown[i].Post, storage.Instant(e.now))
		d.Key, d.Replaces = outbox.Key(e.run.ID+"/remove", int(shown[i].ID)), &shown[i]
		outbox.Add(e.Txn, d, outbox.NoPart, false)
	}
	if e.run.Signed {
		outbox.ReleaseUnsign(e.Txn, e.run.ID, e.now)
	}
}

// Copy tells the program that has injected a message of the turn how the run ended.
type Copy struct {
	Queue threads.Thread // has the program's copies: its ID, Key and Workspace
	To    string         // the program
	Of    string         // the UUID of its message
	// Text returns its text. If the run ended without a reply, reply is nil, and error is the text that the thread got.
	Text func(state State, reply *messages.Message, error string) string
}

// copy stores the copies of the run's end. They are no part of the reply: each program has a queue of its own.
func (e *endRunTx) copy(copies []Copy, error string) {
	now := storage.Instant(e.now)
	for _, c := range copies {
		threads.Add(e.Txn, event.Web, "", c.Queue)
		var queue int64
		e.Row([]any{&queue}, `SELECT id FROM threads WHERE key = $1`, string(c.Queue.Key))
		outbox.Add(e.Txn, &outbox.Delivery{
			Thread: queue, ThreadKey: c.Queue.Key, Workspace: c.Queue.Workspace, Run: e.run.ID, Key: outbox.Key(e.run.ID+"/copy/"+c.Of, 0), Kind: outbox.KindCopy,
			Post: outbox.Post{Channel: c.To, Text: c.Text(e.State, e.Message, error)}, State: outbox.Pending, CreatedAt: now,
		}, outbox.NoPart, false)
		e.Copied = append(e.Copied, queue)
	}
}

// delivery returns a delivery of the run, not stored yet. A post for the asker alone is told.
func (run *Run) delivery(kind outbox.Kind, post outbox.Post, now time.Time) *outbox.Delivery {
	switch {
	case post.Alone:
		kind = outbox.KindTell
	case post.Clears:
		kind = outbox.KindUnsign
	}
	notBefore := now
	if len(run.Messages) > 0 {
		notBefore = slices.MaxFunc(run.Messages, func(a, b messages.Message) int { return a.SentAt.Compare(b.SentAt) }).SentAt
	}
	return &outbox.Delivery{
		Thread: run.Thread, ThreadKey: run.ThreadKey, Workspace: run.Workspace, Channel: run.Channel, Parent: run.Parent, Run: run.ID,
		Kind: kind, Post: post, State: outbox.Pending, CreatedAt: now, NotBefore: notBefore, AskedAt: run.AskedAt(),
	}
}

// AskedAt returns when the oldest message of the run was stored; zero if it has none.
func (run *Run) AskedAt() (at time.Time) {
	for i := range run.Messages {
		if made := run.Messages[i].CreatedAt; i == 0 || made.Before(at) {
			at = made
		}
	}
	return at
}

// tell stores the notice of the run's end, and its deliveries. The run's thread must be
// locked. A notice without a text is none.
func (e *endRunTx) tell(n outbox.Notice) {
	e.deliver(n.Posts, nil)
	if n.Text == "" {
		return
	}
	outbox.AddNotice(e.Txn, e.run.Thread, e.nextSeq, e.run.Workspace, e.run.ID, n, e.now)
	e.added++
}

// The kinds of rows of a run.
const (
	RowAnswer = "answer" // each run with an answer has one
	RowTool   = "tool"   // a call of a tool that has ended
	RowStage  = "stage"  // a stage of the work that has ended
)

// finished returns the stages and the calls of tools that the run has finished and that have rows in its workspace.
// Workstreams have their own.
func (e *endRunTx) finished() []stream.Finished {
	if e.rows == nil {
		return nil
	}
	kinds := e.rows(e.run.Workspace)
	tools, stages := slices.Contains(kinds, RowTool), slices.Contains(kinds, RowStage)
	if !tools && !stages {
		return nil
	}
	said := storage.Rows(e.Txn, func(m *stream.Message) []any {
		return []any{(*int64)(&m.Type), &m.Workstream, (*[]byte)(&m.Details), &m.Time}
	},
		`SELECT type, workstream, details, at FROM run_events WHERE run = $1 AND type <> 12 AND `+ownChunks+` ORDER BY seq`, e.run.ID)
	return slices.DeleteFunc(stream.FinishedOf(e.run.BegunAt, storage.Instant(e.now), said), func(f stream.Finished) bool {
		return f.Tool != "" && !tools || f.Tool == "" && !stages
	})
}

// leaveRows stores the rows of a run without an answer, from the thread's next thread_seq on.
func (e *endRunTx) leaveRows() {
	added := e.addRows(e.finished(), e.nextSeq)
	e.added, e.nextSeq = e.added+added, e.nextSeq+added
}

// addRows stores a row of each, from a thread_seq on, and returns their number. The thread must be locked.
func (e *endRunTx) addRows(finished []stream.Finished, seq int64) int64 {
	calls := 0
	for i, f := range finished {
		id, text := f.Stage+"-"+e.run.ID, f.Stage
		if f.Stage == stream.StageToolExecution {
			calls++
			id, text = fmt.Sprintf("tool_%s_%d", e.run.ID, calls), f.Tool
		}
		row := rowMetadata{RunID: e.run.ID, Stage: f.Stage, LatencyMS: f.Latency.Milliseconds(), MessageID: id, ToolName: f.Tool, Error: event.Cut(f.Error, maxRowError), UISchema: f.Card}
		if f.Failed {
			row.Status = "failed"
		}
		metadata, _ := event.JSON(row) // texts, a number and a card that was read
		messages.InsertRow(e.Txn, e.run.Thread, seq+int64(i), e.run.Workspace, e.run.Agent, text, metadata, storage.Millis(f.At))
	}
	return int64(len(finished))
}

// rowMetadata is the metadata of a row.
type rowMetadata struct {
	RunID     string `json:"run_id"`
	Stage     string `json:"stage"`
	LatencyMS int64  `json:"latency_ms"`
	MessageID string `json:"message_id"`
	ToolName  string `json:"tool_name,omitempty"`
	// Status is "failed" for a call that failed; Error is what its agent told then.
	Status string `json:"status,omitempty"`
	Error  string `json:"error,omitempty"`
	// UISchema is the card of a call's result.
	UISchema json.RawMessage `json:"uiSchema,omitempty"`
}

// maxRowError bounds the error of a call in its row, in characters.
const maxRowError = 1000
