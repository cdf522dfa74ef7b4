package runs

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"parley/ingest/journal/outbox"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
	"parley/ingest/stream"
)

// Question is an agent's question to the people of a thread, which ended a run. The thread's
// next run has the question and its answer.
type Question struct {
	stream.Ask
	Run     string          `json:"-"` // that asked it
	Agent   string          `json:"-"`
	Details json.RawMessage `json:"details,omitempty"` // of the agent's REQUEST_INPUT
	UntilAt time.Time       `json:"-"`                 // an answer must come before
	// Answer is nil if nobody answered, or if the answer was withdrawn.
	Answer *Answer `json:"-"`
}

// Answer is a person's answer to a question.
type Answer struct {
	Option string `json:"option,omitempty"` // the id of the chosen option; empty for other words
	Text   string `json:"text"`
	// Message is the row of the message in the store; 0 after a read.
	Message int64 `json:"message"`
}

// Button returns the id of the button of a question's option.
func Button(run string, option int) string { return "parley-" + outbox.Key(run+"/answer", option) }

// cardPrefix begins the ids of the buttons of cards: "parley-card-<run>-<number>".
const cardPrefix = "parley-card-"

// CardButton returns the id of the button of a run's card, by its number from 0.
func CardButton(run string, n int) string { return fmt.Sprintf("%s%s-%d", cardPrefix, run, n) }

// CardOf returns the run whose card has a button with an id; empty if the id is not of a card's button.
func CardOf(button string) (run string) {
	if named, ok := strings.CutPrefix(button, cardPrefix); ok {
		run = named[:max(strings.LastIndexByte(named, '-'), 0)]
	}
	return run
}

// ask stores the question with which the run ends. The thread's next run gets it: that of the
// answer, or one after the question's time.
func (e *endRunTx) ask(q *Question) {
	if q == nil {
		return
	}
	e.Do(`INSERT INTO questions (run, thread, agent, state, body, asked_at, until_at) VALUES ($1, $2, $3, 'open', $4, $5, $6)`,
		e.run.ID, e.run.Thread, e.run.Agent, e.Pack(q, false), e.now, storage.Millis(q.UntilAt))
	threads.AskPeople(e.Txn, e.run.Thread, e.run.ID, storage.Millis(q.UntilAt)) // a newer message that triggers a run ends the wait; see threads.Asks
}

// Question returns the question of a run. It returns ErrNotFound if there is none.
func (r *Runs) Question(ctx context.Context, run string) (Question, error) {
	q, err := storage.Read(ctx, r.db, func(tx *storage.Txn) *Question { return questionOf(tx, run, `true`) })
	if err != nil || q == nil {
		return Question{}, cmp.Or(err, storage.ErrNotFound)
	}
	return *q, nil
}

// IsAsking reports whether a run has a question that is open, or whose answer is for a run that has not ended.
func (r *Runs) IsAsking(ctx context.Context, run string) (bool, error) {
	return storage.ReadOne(ctx, r.db, func(tx *storage.Txn) bool {
		return tx.Has(`SELECT 1 FROM questions q WHERE q.run = $1 AND (q.state = 'open' OR q.answer NOT IN ('', 'null') AND EXISTS (SELECT 1 FROM threads t
			WHERE t.id = q.thread AND (t.question = q.run OR t.run_id IS NOT NULL AND t.run_question = q.run)))`, run)
	})
}

// HasAsked reports whether the run that agents know by an id has asked a question; see Run.AgentID.
func (r *Runs) HasAsked(ctx context.Context, known string) (bool, error) {
	return storage.ReadOne(ctx, r.db, func(tx *storage.Txn) bool {
		return tx.Has(`SELECT 1 FROM questions WHERE run IN ($1, `+knownToAgents+`)`, known)
	})
}

// OpenQuestion returns the question of a run if it is open and its time is not over; nil if it is not.
func OpenQuestion(tx *storage.Txn, run string, now int64) *Question {
	return questionOf(tx, run, `state = 'open' AND until_at > $2`, now)
}

// questionOf returns the question of a run if it meets a condition, whose arguments begin with $2; nil for
// none.
func questionOf(tx *storage.Txn, run, condition string, args ...any) *Question {
	q := &Question{Run: run}
	var body, answer string
	if !tx.Row([]any{&q.Agent, &body, &answer, &q.UntilAt}, `SELECT agent, body, answer, until_at FROM questions WHERE run = $1 AND `+condition,
		append([]any{run}, args...)...) {
		return nil
	}
	tx.Fail(storage.Unpack(body, q))
	tx.Fail(storage.Unpack(answer, &q.Answer))
	q.Answer = stands(tx, q.Answer)
	return q
}

// stands returns an answer as its message says it now. It is nil if the message was deleted, if
// its turn was stopped, or if other words have replaced those that chose an option.
func stands(tx *storage.Txn, a *Answer) *Answer {
	var text string
	if a == nil || !tx.Row([]any{&text}, `SELECT content FROM messages WHERE row = $1 AND deleted_at = 0
		AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.id = messages.run AND state = 'canceled')`, a.Message) || a.Option != "" && text != a.Text {
		return nil
	}
	return &Answer{Option: a.Option, Text: text}
}

// Close ends a question in a state. A delivery takes the buttons from its post. It returns false,
// and changes nothing, if the question is not open.
func Close(tx *storage.Txn, question, state, answer string, now int64) bool {
	if question == "" || tx.Exec(`UPDATE questions SET state = CASE WHEN answer = 'null' THEN 'final' ELSE $2 END, answer = $3
		WHERE run = $1 AND state = 'open'`, question, state, answer) == 0 {
		return false
	}
	outbox.CloseButtons(tx, question, now)
	return true
}

// reopen opens the question of a failed run once more if a person had answered it: the agent
// still waits, and the people are asked to try again. A second failure leaves it closed, because
// the agent may have forgotten it. A new context that began during the run has no question.
func (e *endRunTx) reopen() bool {
	question, until := e.run.Question, int64(0)
	if question == "" || !e.Row([]any{&until}, `UPDATE questions SET state = 'open', answer = 'null' WHERE run = $1 AND state = 'answered'
		AND EXISTS (SELECT 1 FROM threads WHERE id = $2 AND context_from <= $3) RETURNING until_at`, question, e.run.Thread, e.run.BaseSeq) {
		return false
	}
	threads.AskPeople(e.Txn, e.run.Thread, question, until)
	return true
}

// expireBatch bounds the questions of one call.
const expireBatch = 100

// ExpireQuestions ends the questions that nobody answered in time. The notice informs each
// question's thread; told is called for each: the run has the thread, its agent and the question. Several nodes may call it.
func (r *Runs) ExpireQuestions(ctx context.Context, notice func(*Run) outbox.Notice, told func(*Run)) error {
	now := storage.Millis(r.db.Now())
	late, err := storage.List(ctx, r.db, func(run *Run) []any {
		return []any{&run.Question, &run.Agent, &run.Thread, (*string)(&run.ThreadKey), &run.Workspace, (*string)(&run.Platform), &run.Channel}
	}, `SELECT q.run, q.agent, t.id, t.key, t.workspace, t.platform, t.channel FROM questions q JOIN threads t ON t.id = q.thread
		WHERE q.state = 'open' AND q.until_at <= $1 ORDER BY q.until_at LIMIT CAST($2 AS BIGINT)`, now, int64(expireBatch))
	for _, run := range late {
		n := notice(&run)
		var closed bool
		if err := r.db.Change(ctx, run.ThreadKey, func(tx *storage.Txn) { closed = expire(tx, &run, n, now) }); err != nil {
			return err
		}
		if closed {
			told(&run)
		}
	}
	return err
}

// expire ends the question that a run in its thread would answer. It returns false if another node, or an answer, was faster.
func expire(tx *storage.Txn, run *Run, n outbox.Notice, now int64) bool {
	var seq int64
	tx.Row([]any{&seq}, `SELECT next_seq FROM threads WHERE id = $1 FOR UPDATE`, run.Thread)
	if !Close(tx, run.Question, "expired", "", now) {
		return false
	}
	outbox.AddNotice(tx, run.Thread, seq, run.Workspace, nil, n, now)
	PostNotice(tx, run.Thread, run.Workspace, run.Question+"/expired", n.Posts, now)
	threads.Grow(tx, run.Thread, now)
	return true
}

// PostNotice stores the deliveries of a notice under a key.
func PostNotice(tx *storage.Txn, thread int64, workspace, key string, posts []outbox.Post, now int64) {
	of := &Run{ID: key, Place: threads.Place{Thread: thread, Workspace: workspace}}
	for i, post := range posts {
		d := of.delivery(outbox.KindPost, post, storage.Instant(now))
		d.Key = outbox.Key(key, i)
		outbox.Add(tx, d, int64(i), false)
	}
}

// CorrectQuestions lets open questions begin now that began later than a time, because the clock led.
func CorrectQuestions(tx *storage.Txn, now, late int64) {
	tx.Do(`UPDATE questions SET until_at = until_at - (asked_at - $1), asked_at = $1 WHERE state = 'open' AND asked_at > $2`, now, late)
}
