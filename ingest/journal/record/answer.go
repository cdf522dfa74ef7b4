package record

import (
	"encoding/json"
	"strings"
	"time"

	"parley/ingest/card"
	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
)

// Question implements Look.
func (r *recordTx) Question() *runs.Question {
	if r.thread.Question == "" {
		return nil
	}
	return runs.OpenQuestion(r.Txn, r.thread.Question, r.now)
}

// CardButton implements Look.
func (r *recordTx) CardButton(id string) (button *card.Press, agent string) {
	if run := runs.CardOf(id); run != "" {
		button = outbox.CardButton(r.Txn, r.claim.Thread, run, id)
		r.Row([]any{&agent}, `SELECT agent FROM runs WHERE id = $1`, run)
	}
	return button, agent
}

// maxCards bounds the messages of agents in whose cards a pressed button is looked for.
const maxCards = 100

// Pressed implements Look.
func (r *recordTx) Pressed(action json.RawMessage) (button *card.Press, agent string) {
	var pressed card.Action
	if json.Unmarshal(action, &pressed) != nil {
		return nil, ""
	}
	for _, m := range messages.NewestOfAgents(r.Txn, r.claim.Thread, maxCards) {
		metadata, _ := event.ReadMetadata(m.Metadata) // it was checked when it was stored
		for _, extra := range metadata.Extra {
			if c, err := card.Read(extra.Value, card.SchemaKey); extra.Key == card.SchemaKey && err == nil {
				if b := c.Pressed(pressed); b != nil {
					return b, strings.TrimPrefix(m.SenderID, "agent:")
				}
			}
		}
	}
	return nil, ""
}

// Cause implements Look.
func (r *recordTx) Cause(run string) (sender string, alone bool) {
	of := runs.Run{Messages: messages.Causes(r.Txn, run)}
	return of.Cause()
}

// OwnRuns implements Look.
func (r *recordTx) OwnRuns(since time.Time) (own, refused int) {
	var begun, left int64
	r.Row([]any{&begun, &left}, `SELECT count(DISTINCT run), coalesce(sum(CASE WHEN trigger = 'passive' AND reason = $4 THEN 1 ELSE 0 END), 0) FROM messages
		WHERE thread = $1 AND author = 'system' AND seq IS NOT NULL AND created_at > $2 AND created_at < $3`,
		r.claim.Thread, storage.Millis(since), r.future(since), event.ReasonLoopGuard)
	return int(begun), int(left)
}

// answer stores the answer to the thread's question that a message is; nil for none.
func (r *recordTx) answer(m *messages.Message, a *runs.Answer) {
	if a == nil {
		return
	}
	stored := runs.Answer{Option: a.Option, Message: m.Row}
	if a.Option != "" { // other words stay in the message alone, whose delete blanks them
		stored.Text = a.Text
	}
	r.out.Told = runs.Close(r.Txn, r.thread.Question, "answered", r.Pack(stored, false), r.now) || r.out.Told
}

// unasks closes the thread's question without an answer. It returns false if none is open.
func (r *recordTx) unasks() bool {
	if !runs.Close(r.Txn, r.thread.Question, "expired", "", r.now) {
		return false
	}
	r.out.Told, r.out.Unasked = true, r.thread.Question // a delivery takes the buttons from the posts
	return true
}

// forget takes the thread's question from its next run.
func (r *recordTx) forget() {
	r.unasks()
	threads.ForgetQuestion(r.Txn, r.claim.Thread, r.now)
}

// unask closes the question of a run whose post was deleted. The thread's next run has the question
// without an answer, and messages that wait for the answer are due at once.
func (r *recordTx) unask(run string) {
	if run == "" || run != r.thread.Question || !r.unasks() {
		return
	}
	threads.Hasten(r.Txn, r.claim.Thread, r.now)
}
