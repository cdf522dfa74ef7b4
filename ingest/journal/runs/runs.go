// Package runs stores the agents' work: runs with their events and questions, from the begin to the
// end, and the part of a thread that an agent sees.
package runs

import "parley/ingest/journal/storage"

// Runs are the runs of a journal.
type Runs struct {
	db      *storage.DB
	windows windows
}

// New returns the runs in a store. It remembers the windows of threads in so many bytes of memory.
func New(db *storage.DB, remembered int64) *Runs {
	return &Runs{db: db, windows: windows{bound: remembered}}
}

// Aged returns the steps for runs, their attempts and questions, for the events of runs, and for the inputs of
// agents, before bounds.
func Aged(runs, events, inputs int64) []storage.Step {
	old := storage.ByAge("runs", "id", "ended_at", runs)
	old.Statements = append([]string{`DELETE FROM run_attempts WHERE run IN (SELECT id FROM runs WHERE ended_at <= $1 LIMIT 100)`}, old.Statements...)
	return []storage.Step{
		old, storage.ByAge("questions", "run", "asked_at", runs), storage.ByAge("run_inputs", "run, n", "at", inputs),
		storage.ByAge("run_events", "run, seq", "at", events), storage.ByAge("run_posts", "run, key", "at", events),
		storage.ByAge("run_steps", "run, n", "at", events),
	}
}

// OfMessages returns the statements that delete what is stored of the runs of a page of a workspace's messages; see storage.Step.
func OfMessages() []string {
	const condition = ` IN (SELECT run FROM messages WHERE row > $1 AND row <= $2 AND workspace = $3)`
	return []string{
		`DELETE FROM run_events WHERE run` + condition, `DELETE FROM run_posts WHERE run` + condition, `DELETE FROM run_steps WHERE run` + condition,
		`DELETE FROM run_attempts WHERE run` + condition, `DELETE FROM run_inputs WHERE run` + condition,
		`DELETE FROM agent_choices WHERE thread IN (SELECT thread FROM messages WHERE row > $1 AND row <= $2 AND workspace = $3)`,
		`DELETE FROM agent_sessions WHERE thread IN (SELECT thread FROM messages WHERE row > $1 AND row <= $2 AND workspace = $3)`,
		`DELETE FROM questions WHERE run` + condition, `DELETE FROM runs WHERE id` + condition,
	}
}
