package record

import (
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/budgets"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/schedules"
	"parley/ingest/journal/threads"
	"parley/ingest/journal/workstreams"
	"parley/ingest/stream"
)

// Command is a chat command.
type Command string

// The chat commands.
const (
	CommandStop   Command = "stop"   // ends the workstreams and the unfinished run, or else the turn that waits and the open question; in a workstream both
	CommandNew    Command = "new"    // later turns see nothing from before it
	CommandStatus Command = "status" // changes nothing
	// CommandSchedules changes nothing. CommandUnschedule cancels the schedule of the thread that is its subject.
	CommandSchedules  Command = "schedules"
	CommandUnschedule Command = "unschedule"
	// CommandMode and CommandModel choose the value of a setting that the agent offers in the thread, their subject; without one, they change nothing.
	CommandMode  Command = "mode"
	CommandModel Command = "model"
)

// ThreadState is the work in a thread before a command.
type ThreadState struct {
	Run      string // the unfinished run; empty for none, and the next four fields have no meaning
	Agent    string
	BegunAt  time.Time
	Attempts int64 // reported failures
	Taken    bool  // the agent answers later
	Waiting  int64 // messages that wait for a turn
	Asks     bool  // a question is open
	Working  int64 // workstreams that a stop ends
	// Spent is the budget of which the sender has nothing left, for a status; nil for none.
	Spent *budgets.Budget
	// Workstreams are those that work, the first launched ones, for a status.
	Workstreams []workstreams.Workstream
	// Schedules are those of the thread that wait, for CommandSchedules.
	Schedules []schedules.Schedule
	Canceled  bool // there is a schedule that CommandUnschedule cancels
	// Choices are the settings that the agent offers in the thread, for a status, CommandMode and CommandModel. Picked is the label of the value that
	// the command chooses; empty for none.
	Choices []stream.Choice
	Picked  string
}

// maxWorkstreams bounds ThreadState.Workstreams.
const maxWorkstreams = 20

// before reads the work in the thread before a command.
func (r *recordTx) before(d *Decision) (s ThreadState) {
	s.Run, s.Asks = r.thread.Run, r.Question() != nil
	r.Row([]any{&s.Agent, &s.BegunAt, &s.Attempts, &s.Taken}, `SELECT agent, run_begun_at, run_attempts, CASE WHEN run_answer IS NULL THEN run_taken ELSE 0 END FROM threads WHERE id = $1`, r.claim.Thread)
	s.Waiting = messages.CountWaiting(r.Txn, r.claim.Thread)
	switch d.Command {
	case CommandStop:
		for _, key := range r.reaches(d) {
			s.Working += workstreams.RunningBelow(r.Txn, key)
		}
	case CommandMode, CommandModel:
		s.Choices = runs.ChoicesOf(r.Txn, r.claim.Thread, r.Agent)
		if picked, ok := s.pick(d); ok {
			s.Picked = picked.Label
		}
	case CommandStatus:
		for _, b := range d.Budgets {
			if !budgets.Exhausted(r.Txn, r.Workspace, b, r.now).IsZero() {
				s.Spent = &b
			}
		}
		s.Choices = runs.ChoicesOf(r.Txn, r.claim.Thread, r.Agent)
		for _, key := range r.reaches(d) {
			s.Workstreams = append(s.Workstreams, workstreams.WorkingBelow(r.Txn, key, maxWorkstreams-len(s.Workstreams))...)
		}
	case CommandSchedules:
		s.Schedules = schedules.OfThread(r.Txn, r.claim.Key)
	case CommandUnschedule:
		s.Canceled = schedules.IsOf(r.Txn, r.Workspace, r.claim.Key, d.Subject)
	case CommandNew:
	}
	return s
}

// pick returns the value that a command chooses.
func (s *ThreadState) pick(d *Decision) (stream.Option, bool) {
	for i := range s.Choices {
		if s.Choices[i].Name == string(d.Command) && d.Subject != "" {
			return s.Choices[i].Find(d.Subject)
		}
	}
	return stream.Option{}, false
}

// reaches returns the keys of the threads whose workstreams a command means.
func (r *recordTx) reaches(d *Decision) []event.ThreadKey {
	if d.Above == "" || d.Above == r.claim.Key {
		return []event.ThreadKey{r.claim.Key}
	}
	return []event.ThreadKey{r.claim.Key, d.Above}
}

// obey carries out the command that a new message is.
func (r *recordTx) obey(row *messages.Message, d *Decision) {
	state, thread := &r.state, r.claim.Thread
	if d.Command == CommandStop {
		for _, key := range r.reaches(d) {
			workstreams.StopBelow(r.Txn, key, r.now)
		}
		if state.Run != "" && !event.IsWorkstream(r.claim.Key) { // else what waits is stopped, too
			runs.ForgetReports(r.Txn, thread, "")
		}
	}
	switch {
	case d.Command == CommandMode, d.Command == CommandModel:
		if picked, ok := state.pick(d); ok {
			runs.Choose(r.Txn, thread, r.Agent, string(d.Command), picked.ID)
		}
	case d.Command == CommandUnschedule:
		schedules.Cancel(r.Txn, r.Workspace, r.claim.Key, d.Subject)
	case d.Command == CommandNew:
		r.forget()
		r.newContext(row.Seq)
	case d.Command == CommandStop && state.Run != "":
		if event.IsWorkstream(r.claim.Key) { // the workstream has ended: no other turn follows
			runs.StopWaiting(r.Txn, thread, r.now)
		}
		r.added += runs.Stop(r.Txn, thread, r.now, r.thread.NextSeq+r.added, r.rows)
		r.out.Stopped = state.Run
		r.out.Told = true // the previews and the sign of the run have deliveries
	case d.Command == CommandStop:
		runs.StopWaiting(r.Txn, thread, r.now)
		r.unasks()
	}
}

// newContext lets later turns see nothing from before a place in the thread, and begin new conversations with their agents. The agent of an
// unfinished run goes on in its conversation, which later turns know by another id, and one whose question is closed hears in it that nobody answers.
func (r *recordTx) newContext(seq int64) {
	threads.NewContext(r.Txn, r.claim.Thread, seq)
	if r.thread.Run == "" && r.out.Unasked == "" {
		runs.ForgetSessions(r.Txn, r.claim.Thread)
	}
}
