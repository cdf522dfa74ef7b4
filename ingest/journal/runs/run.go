package runs

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
	"parley/ingest/journal/workstreams"
	"parley/ingest/stream"
)

// Run is the agent's work on one turn. The thread's row holds an unfinished run; a run
// that has ended has a row of its own.
type Run struct {
	ID string // the same at each attempt
	threads.Place
	// Announced has the platform's id of the post that shows people an injected message, by the message's UUID; it is empty while
	// that post is on its way. Above is the platform's id of the thread's first post, if that is at the top of a channel; empty for
	// none. The outbox sets both.
	Announced map[string]string
	Above     string
	// Copied are the threads with the copies for programs, after EndAttempt.
	Copied []int64
	// History describes the messages from before the thread was known; nil if none were
	// read.
	History *ThreadHistory
	Agent   string
	// ContextAfter and BaseSeq bound the block of the run's turn: it holds passive
	// messages after ContextAfter and up to BaseSeq. BaseSeq is the thread's highest
	// thread_seq at the begin.
	ContextAfter, BaseSeq int64
	// ContextFrom is the thread_seq of the command for a new context from which on the
	// transcript reaches; 0 for none.
	ContextFrom int64
	// Gap means that some earlier messages could not be read in time.
	Gap bool
	// Taken says that the agent has taken the run and must not be asked again. Answer is its
	// later answer; nil for none.
	Taken     bool
	Answer    *stream.Message
	Attempts  int64 // reported failures
	Claims    int64 // claims that ended with their process while they worked on the run
	Reruns    int64
	BegunAt   time.Time
	NotBefore time.Time // of the next attempt
	// Messages are the turn's messages, by time, without deleted ones.
	Messages []messages.Message
	// Previews is the number of previews that were begun, those of earlier attempts
	// included.
	Previews int64
	// Signed says that people see a sign of work, and Sign is the external id of the message that has it; empty if no
	// message has it, such as that of a run for reports.
	Signed bool
	Sign   string
	// Stepped says that the run may have stored steps.
	Stepped bool
	// EventSeq is the seq of the last event of the attempts before this one; 0 for none.
	EventSeq int64
	// Followed says that other nodes are told of changes of the run, because clients may
	// follow it there. AppendEvents sets it.
	Followed bool
	// appended is the seq of the run's last event after the last AppendEvents whose outcome is known.
	// unclear says that one followed whose outcome is not.
	appended int64
	unclear  bool
	// Question is the id of the run whose question the run answers; empty for none.
	Question string
	// Fresh means that Messages are as they were when the run began: a transcript need not
	// read them again.
	Fresh bool
	// Named means that a message came with an id for the run. No other message joins it, except reports of its workstreams.
	Named bool
	// Files is the number of the files of Messages in the agent's input. Transcript sets it. If more
	// have come when the agent has answered, the run is repeated with them.
	Files int64
	// Seen is the time of the newest edit in the agent's input; zero for none. Transcript
	// sets it. A later edit makes the reply stale.
	Seen time.Time

	// counted is the number of Messages that run_left counted when they were read: a report that has joined
	// the run is none of them; see JoinRun.
	counted int64

	// Changed is the thread's number of changes at the begin; see windows.
	Changed int64

	shown *remembered // its transcript; nil before Transcript
	first *firstTurn  // after SetHistory, if Transcript need not read the messages; else nil
}

// State is the state of a run that has ended.
type State string

// The states of runs that have ended, and of one that has not.
const (
	Unfinished  State = ""
	Done        State = "done"
	Failed      State = "failed"
	Canceled    State = "canceled"
	Dropped     State = "dropped"
	Quiet       State = "quiet"       // the agent chose to say nothing
	Interrupted State = "interrupted" // the next run has its messages
)

// SetMessages sets the run's messages.
func (run *Run) SetMessages(messages []messages.Message) {
	run.Messages, run.counted = messages, int64(len(messages))
	run.Named = slices.ContainsFunc(messages, namesRun)
	run.sees(messages)
}

func namesRun(m messages.Message) bool { return m.ClientRunID != "" }

// IsScheduled reports whether a schedule asked. If so, no person waits for the answer: people see neither the work
// nor its failure.
func (run *Run) IsScheduled() bool {
	return len(run.Messages) == 1 && run.Messages[0].Reason == event.ReasonSchedule
}

// Cause returns the sender who pays for the run: the last person or bot whose message it has. A run without one was caused by another
// run, and has the cause of that; alone says so.
func (run *Run) Cause() (sender string, alone bool) {
	for _, m := range slices.Backward(run.Messages) {
		if m.Author == messages.ByHuman || m.Author == messages.ByBot {
			return cmp.Or(m.Quotes.Payer, m.SenderID), false
		}
	}
	for _, m := range slices.Backward(run.Messages) {
		metadata, _ := event.ReadMetadata(m.Metadata) // it was checked when it was stored
		if sender = metadata.Cause(); sender != "" {
			break
		}
	}
	return sender, len(run.Messages) > 0
}

// sees notes that the agent's input has the messages in their current state, with their files.
func (run *Run) sees(messages []messages.Message) {
	run.Seen, run.Files = time.Time{}, 0
	for _, m := range messages {
		run.Files += m.FileCount
		if m.EditedAt.After(run.Seen) {
			run.Seen = m.EditedAt
		}
	}
}

// OtherAgentError is the error of BeginRun if the thread's turn belongs to another agent,
// which is the value.
type OtherAgentError string

// Error implements error.
func (agent OtherAgentError) Error() string { return "the turn belongs to agent " + string(agent) }

// ErrMissed is the error of BeginRun if envelopes waited for messages that the thread had already.
var ErrMissed = errors.New("the thread's intake has envelopes that waited for its messages")

// BeginRun resumes the thread's unfinished run, or begins one for the waiting messages:
// all those for the agent of the earliest one, or the earliest one alone if each reports
// that every message of the thread is a turn of its own and the run gets no question. If that
// agent is another one, the error is an OtherAgentError. It returns nil if nothing is due, and
// while intake must record envelopes first; RecordResult.TurnDue then tells when. In the thread of a
// workstream that has ended, it stops the messages that wait, and returns nil. gap means that
// some of the thread's earlier messages could not be read in time. The caller works only on a run
// with fewer than most Claims: the end of its process is not counted in any other run. If the
// error is ErrMissed, the thread has got envelopes, which intake must record first.
func (r *Runs) BeginRun(ctx context.Context, claim *threads.Claim, agent string, gap bool, each func(*Run) bool, most int64) (*Run, error) {
	b, err := storage.Write(ctx, r.db, storage.WriteOptions{Thread: claim.Key}, func(tx *storage.Txn) *beginRunTx {
		b := &beginRunTx{Txn: tx, now: storage.Millis(r.db.Now()), agent: agent, gap: gap}
		b.read(claim)
		switch {
		case b.thread.TurnAt == 0 || b.thread.TurnAt > b.now: // nothing is due
		case b.thread.Pending > 0 && b.thread.IntakeAt != 0 && b.thread.IntakeAt <= b.now: // an edit or a delete may be among the accepted envelopes
		case b.thread.Missed:
			b.admit()
		case b.thread.Agent != agent:
			b.other = b.thread.Agent
		case b.run.ID != "":
			b.resume(most)
			b.made = &b.run
		case workstreams.HasEnded(b.Txn, b.run.ThreadKey): // a message came after the end of the workstream
			StopWaiting(b.Txn, b.run.Thread, b.now)
		default:
			b.made = b.begin(b.run.Question == "" && each(&b.run)) // else the answer may not be the earliest
			b.begun = b.made != nil
		}
		return b
	})
	switch {
	case err != nil:
		return nil, err
	case b.other != "":
		return nil, OtherAgentError(b.other)
	case b.admitted:
		return nil, ErrMissed
	case b.begun:
		threads.RunBegun(r.db, b.run.Thread, b.run.ThreadKey)
		workstreams.Changed(ctx, r.db, b.run.ThreadKey)
	}
	return b.made, nil
}

// beginRunTx is one BeginRun inside its transaction.
type beginRunTx struct {
	*storage.Txn
	now   int64
	agent string
	gap   bool

	made  *Run   // the result; nil for none
	begun bool   // made is a new run
	other string // the agent that the turn belongs to, if it is another one

	run      Run
	thread   threads.Turn
	admitted bool // see threads.Turn
}

func (b *beginRunTx) read(claim *threads.Claim) {
	b.thread = threads.LockTurn(b.Txn, claim)
	t, run := &b.thread, &b.run
	run.Place, run.Agent, run.History, run.Changed = t.Place, b.agent, ThreadHistoryOf(b.Txn, t.History), t.Changes
	if run.ContextFrom, run.Question = t.ContextFrom, t.Question; t.Run.ID != "" {
		r := &t.Run
		run.ID, run.BegunAt, run.NotBefore, run.Attempts, run.Reruns = r.ID, r.BegunAt, r.NotBefore, r.Attempts, r.Reruns
		run.ContextFrom, run.Question, run.Taken = r.ContextFrom, r.Question, r.Taken
	}
}

// admit moves the envelopes that wait for messages of the thread into it.
func (b *beginRunTx) admit() {
	envelopes.AdmitMissed(b.Txn, b.run.Thread, b.run.Workspace, b.now)
	b.admitted = true
}

// resume continues a run that was begun before and did not end.
func (b *beginRunTx) resume(most int64) {
	run := &b.run
	var row threads.Resumed
	threads.ResumeRun(b.Txn, run.Thread, most, &row)
	readKept(b.Txn, run)
	b.Fail(storage.Unpack(b.thread.Run.Answer, &run.Answer))
	b.Row([]any{&run.ContextAfter, &run.BaseSeq, &run.Gap},
		`SELECT context_after, base_seq, gap FROM messages WHERE run = $1 AND context_after IS NOT NULL`, run.ID)
	run.Claims, run.EventSeq = row.Claims, row.EventSeq
	if run.EventSeq > 0 && b.thread.Run.Answer == "" { // else the answer, which came later, ends the streamed chunks
		run.EventSeq = b.replaceChunks(run) // of the attempt before
	}
	if row.Left <= 0 { // reports may have joined it, but the messages that it answers were deleted
		run.SetMessages(nil)
		return
	}
	run.SetMessages(messages.Lines(b.Txn, run.ID))
	run.counted = min(run.counted, row.Left)
}

// readKept reads what the attempts before this one have left of a run: its previews, the sign of work, and whether it has steps.
func readKept(tx *storage.Txn, run *Run) {
	var signs int64
	tx.Row([]any{&run.Previews, &signs, &run.Sign, &run.Stepped}, `SELECT (SELECT count(*) FROM deliveries WHERE run = $1 AND kind = 'preview'),
		(SELECT count(*) FROM deliveries WHERE run = $1 AND kind = 'unsign' AND state = 'held'),
		(SELECT payload FROM deliveries WHERE run = $1 AND kind = 'unsign' AND state = 'held' ORDER BY id DESC LIMIT 1),
		EXISTS (SELECT 1 FROM run_steps WHERE run = $1)`, run.ID)
	run.Signed = signs > 0
}

// maxTurn bounds the messages of one turn.
const maxTurn = 1000

// begin starts a run for the waiting messages, or for the earliest one alone. Without
// any, the thread's turn is not due any more.
func (b *beginRunTx) begin(alone bool) *Run {
	limit := maxTurn
	if alone {
		limit = 1
	}
	run := &b.run
	answer := b.answered()
	waiting := messages.Waiting(b.Txn, run.Thread, answer, limit+1)
	if len(waiting) == 0 {
		threads.EndTurn(b.Txn, run.Thread)
		return nil
	}
	if first := waiting[0].Agent; first != b.agent {
		b.other = first
		threads.SetAgent(b.Txn, run.Thread, first)
		return nil
	}
	more := false // messages are left for a further turn
	if n := together(waiting); n < len(waiting) || n > limit || answer > 0 && len(messages.Waiting(b.Txn, run.Thread, 0, len(waiting)+1)) > len(waiting) {
		waiting, more = waiting[:min(n, limit)], true
	}
	run.ID, run.ContextAfter, run.BaseSeq, run.BegunAt, run.Gap = RunID(b.Txn, waiting[0].ClientRunID), max(b.thread.BegunSeq, b.thread.ContextFrom), b.thread.NextSeq-1, storage.Instant(b.now), b.gap
	for i := range waiting {
		waiting[i].Run = run.ID
	}
	run.SetMessages(waiting)
	run.Fresh = true
	b.take(waiting, answer)
	threads.BeginRun(b.Txn, run.Thread, threads.Beginning{Run: run.ID, BaseSeq: run.BaseSeq, Messages: int64(len(waiting)), Bot: b.askedByBot(), More: more}, b.now)
	return run
}

// answered returns the row of the message that has answered the run's question and waits; 0 for none. The run is about that answer, so
// what is no person's has a later run.
func (b *beginRunTx) answered() int64 {
	var packed string
	var a Answer
	if b.run.Question == "" || !b.Row([]any{&packed}, `SELECT answer FROM questions WHERE run = $1 AND state = 'answered'`, b.run.Question) {
		return 0
	}
	b.Fail(storage.Unpack(packed, &a))
	if !messages.IsWaiting(b.Txn, b.run.Thread, a.Message) {
		return 0
	}
	return a.Message
}

// together returns the number of the first messages that ask the same agent for one run. A
// message that came with an id for its run is alone.
func together(waiting []messages.Message) int {
	first := waiting[0]
	if n := slices.IndexFunc(waiting[1:], func(m messages.Message) bool {
		return m.Agent != first.Agent || m.ClientRunID != "" || first.ClientRunID != ""
	}); n >= 0 {
		return 1 + n
	}
	return len(waiting)
}

// take gives the run its messages. The first one carries the bounds of the turn's block.
func (b *beginRunTx) take(waiting []messages.Message, answer int64) {
	messages.TakeUpTo(b.Txn, b.run.Thread, answer, b.run.ID, &waiting[0], &waiting[len(waiting)-1],
		messages.Bounds{After: b.run.ContextAfter, Base: b.run.BaseSeq, Gap: b.gap})
}

// askedByBot returns the channel in which a bot requested the run. It is empty if no bot
// did, or if an earlier run gave the message back, because that run counts.
func (b *beginRunTx) askedByBot() string {
	if slices.ContainsFunc(b.run.Messages, func(m messages.Message) bool { return m.Author == messages.ByBot }) {
		return b.thread.BotChannel
	}
	return ""
}

// BotChannel returns the name under which the turns that bots request in a channel are
// counted.
func BotChannel(workspace, channel string) string { return workspace + " " + channel }
