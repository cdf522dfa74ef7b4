// Package workstreams stores the children of runs: which run gave which task to which agent, how far the
// child is, and what its parent was told of it.
package workstreams

import (
	"context"
	"errors"
	"strings"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
)

// State is the state of a workstream, in the spelling of our API.
type State string

// The states.
const (
	Running   State = "running"
	Canceling State = "canceling" // its parent wants it to end
	Completed State = "completed"
	Failed    State = "failed"
	Timeout   State = "timeout" // its deadline passed
	Canceled  State = "canceled"
)

// Ended reports whether the state is final.
func (s State) Ended() bool { return s != Running && s != Canceling }

// Phase is the kind of work of a running workstream, in the spelling of our API.
type Phase string

// The phases.
const (
	Planning      Phase = "planning"
	ExecutingTool Phase = "executing_tool"
	Synthesizing  Phase = "synthesizing"
	Blocked       Phase = "blocked" // it waits for a message
	Done          Phase = "done"
)

// The errors of Launch.
var (
	// ErrTooMany means that as many children of the run work as its agent may have.
	ErrTooMany = errors.New("the run has as many workstreams at work as it may")
	// ErrTooDeep means that a child may not have children.
	ErrTooDeep = errors.New("this workstream may not launch one of its own")
)

// ErrEnded is the error of a change to a workstream that has ended.
var ErrEnded = errors.New("the workstream has ended")

// Place is the place of a thread.
type Place struct {
	Workspace string
	Platform  event.Platform
	Thread    event.ThreadKey
	Channel   string
	Parent    string // of the channel; empty for none
}

// Progress is the last report of a workstream about its work.
type Progress struct {
	Phase     Phase
	Tool      string // of ExecutingTool
	Iteration int64
	Message   string
}

// String returns what the workstream is doing, for people.
func (p Progress) String() string {
	if p.Phase == ExecutingTool && p.Tool != "" {
		return "executing " + p.Tool
	}
	return strings.ReplaceAll(string(p.Phase), "_", " ")
}

// Workstream is a child of a run.
type Workstream struct {
	ID    string // the launch_id
	Run   string // that launched it
	Asker string // the agent of that run
	Of    Place  // the place of that run
	Agent string
	Name  string
	Task  string

	Interactive bool // it waits for further messages after its task, and ends only if its parent says so
	Apart       bool // its files are not among those of the run

	State State
	Progress
	LaunchedAt, DeadlineAt time.Time
	EndedAt                time.Time // zero if it has not ended
	Summary, Error         string

	// Said counts the steps of its life that its parent or it was told of; see package workstream.
	Said int64
}

// Elapsed returns the share of the workstream's time that is over, in percent.
func (w *Workstream) Elapsed(now time.Time) int64 {
	if w.State.Ended() {
		now = w.EndedAt
	}
	return min(100, 100*int64(now.Sub(w.LaunchedAt))/max(1, int64(w.DeadlineAt.Sub(w.LaunchedAt))))
}

// Key is the key of the workstream's own thread.
func (w *Workstream) Key() event.ThreadKey { return event.WorkstreamThread(w.ID) }

// Workstreams are the workstreams in a journal.
type Workstreams struct{ db *storage.DB }

// New returns the workstreams in a store.
func New(db *storage.DB) *Workstreams { return &Workstreams{db} }

const columns = `w.id, w.run, w.asker, w.workspace, w.platform, w.parent, w.channel, w.channel_parent, w.agent, w.name, w.task, w.interactive, w.apart,
	w.state, w.phase, w.tool, w.iteration, w.message, w.launched_at, w.deadline_at, w.ended_at, w.summary, w.error, w.said`

func (w *Workstream) dest() []any {
	return []any{
		&w.ID, &w.Run, &w.Asker, &w.Of.Workspace, (*string)(&w.Of.Platform), (*string)(&w.Of.Thread), &w.Of.Channel, &w.Of.Parent, &w.Agent, &w.Name, &w.Task, &w.Interactive, &w.Apart,
		(*string)(&w.State), (*string)(&w.Phase), &w.Tool, &w.Iteration, &w.Message, &w.LaunchedAt, &w.DeadlineAt, &w.EndedAt, &w.Summary, &w.Error, &w.Said,
	}
}

// Bounds are the bounds of a run's workstreams.
type Bounds struct {
	Max   int64 // number of children that work at once
	Depth int64 // number of generations below a person's run
}

// Launch stores a workstream of an unfinished run, which is due at once. It sets the run's place and agent, and
// returns the stored one if there is one with its ID. It fails with ErrNotFound if the run is unknown or has
// ended, with ErrTooMany and with ErrTooDeep.
func (s *Workstreams) Launch(ctx context.Context, w Workstream, bounds Bounds) (Workstream, error) {
	now := storage.Millis(s.db.Now())
	launched, err := storage.Write(ctx, s.db, storage.WriteOptions{}, func(tx *storage.Txn) Workstream {
		if known := find(tx, `w.id = $1`, w.ID); known != nil {
			return *known
		}
		if !tx.Row([]any{&w.Of.Workspace, (*string)(&w.Of.Platform), (*string)(&w.Of.Thread), &w.Of.Channel, &w.Of.Parent, &w.Asker},
			`SELECT workspace, platform, key, channel, parent, agent FROM threads WHERE run_id = $1 FOR UPDATE`, w.Run) {
			tx.Fail(storage.ErrNotFound)
			return w
		}
		var working int64
		tx.Row([]any{&working}, `SELECT count(*) FROM workstreams WHERE run = $1 AND state IN ('running', 'canceling')`, w.Run)
		switch {
		case depth(tx, w.Of.Thread) > bounds.Depth:
			tx.Fail(ErrTooDeep)
		case working >= bounds.Max:
			tx.Fail(ErrTooMany)
		}
		w.LaunchedAt, w.DeadlineAt, w.State, w.Phase = storage.Instant(now), storage.Instant(storage.Millis(w.DeadlineAt)), Running, Planning
		tx.Do(`INSERT INTO workstreams (id, run, asker, workspace, platform, parent, channel, channel_parent, thread, agent, name, task, interactive, apart,
				state, phase, launched_at, deadline_at, due_at, said)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $16, 'running', 'planning', $14, $15, $14, $17)`,
			w.ID, w.Run, w.Asker, w.Of.Workspace, string(w.Of.Platform), string(w.Of.Thread), w.Of.Channel, w.Of.Parent, string(w.Key()), w.Agent, w.Name, w.Task,
			storage.Number(w.Interactive), now, storage.Millis(w.DeadlineAt), storage.Number(w.Apart), w.Said)
		outbox.StateChanged(tx, w.Run, now, !event.IsWorkstream(w.Of.Thread) && s.db.Shows != nil && s.db.Shows(w.Of.Workspace, w.Asker, "workstream"))
		return w
	})
	if err == nil {
		Changed(ctx, s.db, w.Key())
	}
	return launched, err
}

// depth returns the generation of a child of a thread: 1 below a thread of people.
func depth(tx *storage.Txn, thread event.ThreadKey) int64 {
	n := int64(1)
	for tx.Err == nil && event.IsWorkstream(thread) {
		n++
		if !tx.Row([]any{(*string)(&thread)}, `SELECT parent FROM workstreams WHERE thread = $1`, string(thread)) {
			break
		}
	}
	return n
}

// find returns the workstream that meets a condition; nil for none.
func find(tx *storage.Txn, condition string, args ...any) *Workstream {
	w := &Workstream{}
	if !tx.Row(w.dest(), `SELECT `+columns+` FROM workstreams w WHERE `+condition, args...) {
		return nil
	}
	return w
}

// Workstream returns a workstream. It fails with ErrNotFound if there is none.
func (s *Workstreams) Workstream(ctx context.Context, id string) (w Workstream, err error) {
	err = s.db.One(ctx, w.dest(), `SELECT `+columns+` FROM workstreams w WHERE w.id = $1`, id)
	return w, err
}

// WorkstreamsOf returns the workstreams of a run, the first launched one first.
func (s *Workstreams) WorkstreamsOf(ctx context.Context, run string) ([]Workstream, error) {
	return storage.ReadOne(ctx, s.db, func(tx *storage.Txn) []Workstream { return Of(tx, run) })
}

// Of is WorkstreamsOf inside a transaction.
func Of(tx *storage.Txn, run string) []Workstream {
	return storage.Rows(tx, (*Workstream).dest, `SELECT `+columns+` FROM workstreams w WHERE w.run = $1 ORDER BY w.launched_at, w.id`, run)
}

// WorkstreamsBelow returns the workstreams that an agent has launched from a thread, those that work before those that
// have ended, the newest first.
func (s *Workstreams) WorkstreamsBelow(ctx context.Context, thread event.ThreadKey, asker string, limit int) ([]Workstream, error) {
	return storage.List(ctx, s.db, (*Workstream).dest, `SELECT `+columns+` FROM workstreams w WHERE w.parent = $1 AND w.asker = $2
		ORDER BY w.due_at IS NULL, w.launched_at DESC, w.id LIMIT CAST($3 AS BIGINT)`, string(thread), asker, int64(limit))
}

// WorkingBelow returns the workstreams of a thread that work, the first launched one first.
func WorkingBelow(tx *storage.Txn, thread event.ThreadKey, limit int) []Workstream {
	return storage.Rows(tx, (*Workstream).dest, `SELECT `+columns+` FROM workstreams w WHERE w.parent = $1 AND w.state IN ('running', 'canceling')
		ORDER BY w.launched_at, w.id LIMIT CAST($2 AS BIGINT)`, string(thread), int64(limit))
}

// Report stores the progress of a workstream that works. An iteration of 0 and an empty message leave what is known. Report fails with
// ErrEnded if the workstream does not work any more, and with ErrNotFound if there is none.
func (s *Workstreams) Report(ctx context.Context, id string, p Progress) error {
	return s.change(ctx, id, `phase = $2, tool = $3, iteration = CASE WHEN $4 > 0 THEN CAST($4 AS BIGINT) ELSE iteration END,
			message = CASE WHEN $5 <> '' THEN $5 ELSE message END WHERE id = $1 AND state IN ('running', 'canceling')`,
		string(p.Phase), p.Tool, p.Iteration, p.Message)
}

// Terminate makes a running workstream end. It is due at once. It fails with ErrEnded if it has ended, and with
// ErrNotFound if there is none. A further call changes nothing.
func (s *Workstreams) Terminate(ctx context.Context, id string) error {
	return s.change(ctx, id, canceling+` WHERE id = $1 AND state IN ('running', 'canceling')`, storage.Millis(s.db.Now()))
}

const (
	// isDue makes a workstream due at $2, or earlier. It always changes due_at, so that a step that was read before is not
	// taken.
	isDue = `due_at = CASE WHEN due_at <= $2 THEN due_at - 1 ELSE CAST($2 AS BIGINT) END`
	// canceling makes a workstream end that works.
	canceling = `state = 'canceling', ended_at = CASE WHEN state = 'running' THEN CAST($2 AS BIGINT) ELSE ended_at END, ` + isDue
)

// runsBelow is the condition of the workstreams of the thread $1 that a stop ends.
const runsBelow = `parent = $1 AND state = 'running' AND due_at IS NOT NULL`

// RunningBelow counts the workstreams of a thread that StopBelow ends.
func RunningBelow(tx *storage.Txn, parent event.ThreadKey) (n int64) {
	tx.Row([]any{&n}, `SELECT count(*) FROM workstreams WHERE `+runsBelow, string(parent))
	return n
}

// StopBelow makes the running workstreams of a thread end, because a person has stopped the work there.
func StopBelow(tx *storage.Txn, parent event.ThreadKey, now int64) {
	tx.Do(`UPDATE workstreams SET `+canceling+` WHERE `+runsBelow, string(parent), now)
}

// StopOf makes the running workstreams of a run end, because the run has ended without an answer.
func StopOf(tx *storage.Txn, run string, now int64) {
	tx.Do(`UPDATE workstreams SET `+canceling+` WHERE run = $1 AND state = 'running'`, run, now)
}

// change changes a workstream that works.
func (s *Workstreams) change(ctx context.Context, id, set string, args ...any) error {
	err := s.db.Change(ctx, "", func(tx *storage.Txn) {
		if tx.Exec(`UPDATE workstreams SET `+set, append([]any{id}, args...)...) > 0 {
			tellState(tx, `id = $1`, id, storage.Millis(s.db.Now()))
			return
		}
		if tx.Has(`SELECT 1 FROM workstreams WHERE id = $1`, id) {
			tx.Fail(ErrEnded)
		}
		tx.Fail(storage.ErrNotFound)
	})
	if err == nil {
		Changed(ctx, s.db, event.WorkstreamThread(id))
	}
	return err
}

const parentOf = `SELECT id FROM threads WHERE key = (SELECT parent FROM workstreams WHERE thread = $1)`

// Changed wakes the readers of the thread from which the workstream of a thread was launched, because the workstream or its runs have
// changed. Other threads have none. Without an answer of the store, they look again by themselves.
func Changed(ctx context.Context, db *storage.DB, thread event.ThreadKey) {
	var parent int64
	if event.IsWorkstream(thread) {
		if known, err := db.Row(ctx, []any{&parent}, parentOf, string(thread)); known && err == nil {
			threads.ThreadChanged(db, parent, true)
		}
	}
}

// Words are the words that wake the readers of Changed.
func Words(tx *storage.Txn, thread event.ThreadKey) string {
	var parent int64
	tx.Row([]any{&parent}, parentOf, string(thread))
	return threads.Words(parent)
}

// RunEnded makes the workstream of a thread due, because a run or a workstream of the thread has ended. Other threads have
// none.
func RunEnded(tx *storage.Txn, thread event.ThreadKey, now int64) {
	if event.IsWorkstream(thread) {
		tx.Do(`UPDATE workstreams SET `+isDue+` WHERE thread = $1 AND state IN ('running', 'canceling')`, string(thread), now)
	}
}

// HasEnded reports whether the workstream of a thread has ended. Other threads have none.
func HasEnded(tx *storage.Txn, thread event.ThreadKey) bool {
	return event.IsWorkstream(thread) && tx.Has(`SELECT 1 FROM workstreams WHERE thread = $1 AND state NOT IN ('running', 'canceling')`, string(thread))
}

// MaxTool and MaxMessage bound the characters of a tool's name and of what a run says of its work.
const MaxTool, MaxMessage = 80, 200

// Works notes what the run of a workstream's thread does. It writes only a change, and returns the workstream after it; nil for none.
func Works(tx *storage.Txn, thread event.ThreadKey, phase Phase, tool string) *Workstream {
	if tx.Exec(`UPDATE workstreams SET phase = $2, tool = $3 WHERE thread = $1 AND state IN ('running', 'canceling') AND (phase <> $2 OR tool <> $3)`,
		string(thread), string(phase), tool) == 0 {
		return nil
	}
	return find(tx, `w.thread = $1`, string(thread))
}

// Told notes that the state post of the run changes that has launched the workstream of a thread. The transaction locks no thread
// afterwards.
func Told(tx *storage.Txn, thread event.ThreadKey, now int64) {
	tellState(tx, `thread = $1`, string(thread), now)
}

// tellState notes that the state post of a run changes: of one that has launched the workstream that a condition finds.
func tellState(tx *storage.Txn, condition, value string, now int64) {
	var run string
	if tx.Row([]any{&run}, `SELECT run FROM workstreams WHERE `+condition, value) {
		outbox.StateChanged(tx, run, now, false)
	}
}

// Iterates notes the number of the requests to the agent in a run of a thread. Other threads have none.
func Iterates(tx *storage.Txn, thread event.ThreadKey, n int64) {
	if event.IsWorkstream(thread) {
		tx.Do(`UPDATE workstreams SET iteration = $2 WHERE thread = $1 AND state IN ('running', 'canceling') AND iteration <> $2`, string(thread), n)
	}
}

// Aged returns the step for workstreams that ended before a bound.
func Aged(before int64) storage.Step {
	return storage.ByAge("workstreams", "id", "ended_at", before)
}

// OfWorkspace returns the step for the workstreams of a removed workspace.
func OfWorkspace(workspace string) storage.Step { return storage.ByKey(workspace, "workstreams", "id") }

// Forget removes the words from the workstreams of a run, and returns the keys of their threads, whose messages have those words too.
func Forget(tx *storage.Txn, run string) []event.ThreadKey {
	return storage.Rows(tx, func(key *event.ThreadKey) []any { return []any{(*string)(key)} },
		`UPDATE workstreams SET name = '', task = '', tool = '', message = '', summary = '', error = '' WHERE run = $1 RETURNING thread`, run)
}

// Texts are the texts of workstreams that have ended.
func Texts() storage.Texts {
	return storage.Texts{
		Page:  `SELECT id, name, task, tool, message, summary, error FROM workstreams WHERE workspace = $1 AND id > $2 AND ended_at IS NOT NULL ORDER BY id LIMIT 100`,
		First: []any{""}, Columns: 6,
		Empty: []string{`UPDATE workstreams SET name = '', task = '', tool = '', message = '', summary = '', error = '' WHERE id = $1 AND workspace = $2`},
	}
}
