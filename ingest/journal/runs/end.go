package runs

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
	"parley/ingest/journal/workstreams"
	"parley/ingest/stream"
)

// Reply is an agent's answer, ready to commit.
type Reply struct {
	Content    string
	AnsweredAt time.Time // the time of its first token
	Attempt    Attempt
	Posts      []outbox.Post
	// Files are the attachments of a reply that is not posted: its readers take it from the journal.
	Files []event.Attachment
	// Send, if it is set, begins the first delivery in the same transaction, if no other
	// delivery of the thread is open and its channel's pace allows it.
	Send *outbox.Send
	// Copies tell programs of the end.
	Copies []Copy
	// Events are the agent's messages that AppendEvents has not stored.
	Events []stream.Message
	// Metadata returns the message's metadata for its id and latency.
	Metadata func(messageID string, latency time.Duration) []byte
	// Stale is the policy for a stale reply: send, rerun or drop.
	Stale string
	// Again says that the outcome of an earlier call with this reply is unknown.
	Again bool
	// Question is the agent's question to the thread; nil for none.
	Question *Question
	// Withdrawn is the notice of the run if every message of its turn was deleted.
	Withdrawn outbox.Notice
	// Interruptible gives up the reply if a newer message triggers a run, or a message of
	// its turn was edited.
	Interruptible bool
}

// maxReruns bounds the repeated requests for a stale reply.
const maxReruns = 2

// CommitReply ends a run: it stores the reply message, its deliveries and its events in
// one transaction. After that, the agent is not asked again.
func (r *Runs) CommitReply(ctx context.Context, claim *threads.Claim, run *Run, reply Reply) (EndResult, error) {
	e, err := storage.Write(ctx, r.db, storage.WriteOptions{Thread: claim.Key}, func(tx *storage.Txn) *endRunTx {
		e := &endRunTx{Txn: tx, now: storage.Millis(r.db.Now()), node: r.db.Node, shows: r.db.Shows, rows: r.db.Rows, states: r.states(run), run: run, claim: claim}
		if e.commit(reply) {
			e.attempted(reply.Attempt)
		}
		return e
	})
	if reply.Again && errors.Is(err, storage.ErrFenced) {
		e, err = r.committed(ctx, claim, run, reply.Send)
	}
	if err != nil {
		return EndResult{}, err
	}
	if e.Begun != nil && e.Begun.State != outbox.Sending {
		e.Begun = nil // another delivery comes first, or its channel must wait
	}
	RunEnded(ctx, r.db, run.ID, run.Thread, run.Followed, e.chunks)
	wake(r.db, e.told)
	if e.Message != nil {
		r.windows.put(run, e.Message)
	}
	return e.EndResult, nil
}

// EndResult is the result of CommitReply.
type EndResult struct {
	// State is the state in which the run has ended: RunDone with a committed reply, RunDropped
	// with a reply that is recorded and not sent, RunCanceled if every message of the turn was
	// deleted, or RunInterrupted. It is RunUnfinished if the agent is asked again, with the newer
	// messages.
	State   State
	Message *messages.Message // the reply, if it was committed
	// Begun is the first delivery, if it is marked as sending already.
	Begun *outbox.Delivery
	// More says that messages wait for a further turn.
	More bool
	// Copied are the threads with the copies.
	Copied []int64
}

// endRunTx is the end of a run inside its transaction.
type endRunTx struct {
	*storage.Txn
	now    int64
	node   string                                       // of the worker
	shows  func(workspace, agent, messages string) bool // as storage.DB.Shows
	rows   func(workspace string) []string              // as storage.DB.Rows
	states bool                                         // the run may have a state post
	run    *Run
	claim  *threads.Claim

	EndResult           // its Begun may not be marked as sending
	added     int64     // messages that got a thread_seq: the reply or the notice
	chunks    int64     // that were stored of the run, if it has ended
	told      []string  // as of an appender
	next      time.Time // when the run is due again, if an attempt without an answer has not ended it

	turnSince, nextSeq, left, editedAt, reruns int64 // of the thread's row
	answered                                   bool  // its agent has answered later
	agent                                      string
}

// commit stores the reply. A condition in one statement decides whether the thread still
// wants it. The thread's row is read by itself only for a policy, or if the condition
// fails. It returns false if an earlier call, whose outcome was unclear, has done so already.
func (e *endRunTx) commit(reply Reply) bool {
	if reply.Stale == "send" && !reply.Interruptible && e.store(reply) {
		return true
	}
	e.read()
	edited := e.editedAt > storage.Millis(e.run.Seen)
	stale := reply.Stale != "send" && (edited || e.stale())
	switch {
	case e.reruns != e.run.Reruns: // it has added the newer messages
		return false
	case e.left <= 0:
		e.giveUp(Canceled, "every message was deleted", reply.Withdrawn)
		e.copy(reply.Copies, reply.Withdrawn.Text)
	case reply.Interruptible && (edited || e.asked()):
		e.requeue()
	case stale && reply.Stale == "rerun" && e.run.Reruns < maxReruns:
		join(e.Txn, e.run, nil)
		e.rerun()
	case e.run.Reruns < maxReruns && messages.IsIncomplete(e.Txn, e.run.Thread, e.run.ID, e.run.Files):
		messages.TakeRest(e.Txn, e.run.Thread, e.run.ID)
		e.rerun()
	case stale && reply.Stale == "drop":
		e.events(reply.Events, Dropped, "")
		e.deliver(nil, nil)
		e.end(Dropped, "stale: newer messages were recorded", reply.AnsweredAt)
		e.copy(reply.Copies, "")
	case e.answered && e.run.Answer == nil:
		// the next attempt has the answer that another request gave meanwhile, and that was acknowledged
	case !e.store(reply):
		e.Fail(storage.ErrFenced)
	}
	return true
}

// read reads the thread's row and locks it for the rest of the transaction. It fails with
// ErrFenced if the run is no longer the thread's.
func (e *endRunTx) read() {
	lockRun(e.Txn, e.claim, e.run, []any{&e.turnSince, &e.nextSeq, &e.left, &e.editedAt, &e.reruns, &e.answered, &e.agent},
		`turn_since, next_seq, run_left, run_edited_at, run_reruns, run_answer IS NOT NULL, agent`)
}

// committed returns the result of an earlier CommitReply with an unknown outcome. It
// fails with ErrFenced if the claim has ended or the run has no reply. It returns the first
// delivery only if the earlier call began it and no worker has begun it since: a second
// call would post it twice.
func (r *Runs) committed(ctx context.Context, claim *threads.Claim, run *Run, send *outbox.Send) (*endRunTx, error) {
	return storage.Write(ctx, r.db, storage.WriteOptions{Thread: claim.Key}, func(tx *storage.Txn) *endRunTx {
		e := &endRunTx{EndResult: EndResult{State: Done}}
		e.More = threads.Lock(tx, claim).Waiting
		if e.Message = messages.Reply(tx, run.ID); e.Message == nil {
			tx.Fail(storage.ErrFenced)
		}
		if d := outbox.OpenDelivery(tx, run.Thread); send != nil && d != nil && d.Key == outbox.Key(run.ID, 0) && d.SendBy.Equal(d.CreatedAt.Add(send.Timeout)) {
			e.Begun = d
		}
		return e
	})
}

// stale reports whether a participating message was recorded after the run began, and the run
// did not get it.
func (e *endRunTx) stale() bool {
	return e.nextSeq-1 > e.run.BaseSeq && e.Has(`SELECT 1 FROM messages WHERE thread = $1 AND seq > $2 AND (trigger = 'run' OR trigger = 'passive' AND memory = 1)
		AND (run IS NULL OR run <> $3) AND reason NOT IN ($4, $5) AND origin <> 'context' LIMIT 1`, e.run.Thread, e.run.BaseSeq, e.run.ID, string(event.ReasonSchedule), string(event.ReasonWorkstream))
}

// asked reports whether a message that is newer than the run's begin asks its agent. Earlier
// ones may wait too: they could not be in the same run.
func (e *endRunTx) asked() bool {
	return e.turnSince != 0 && messages.AsksAfter(e.Txn, e.run.Thread, e.run.Agent, e.run.BaseSeq)
}

// join gives the run the messages that may join it, or one of them, and returns their number. The
// run counts as a bot's if one of them is.
func join(tx *storage.Txn, run *Run, row any) int {
	n, bots := messages.TakeJoining(tx, run.Thread, run.Agent, row, run.ID, run.Named)
	if bots {
		threads.CountBot(tx, run.Thread)
	}
	return n
}

// rerun runs the run again with the newer messages that have joined it. The others wait. The next
// attempt asks the agent again, even if the agent took the run or answered later.
func (e *endRunTx) rerun() {
	base := e.nextSeq - 1
	messages.MoveBase(e.Txn, e.run.ID, base)
	threads.RepeatRun(e.Txn, e.run.Thread, e.run.ID, base, e.now)
}

// store stores the reply with the thread's next thread_seq, its events and its
// deliveries, and ends the run. It returns false, and has stored nothing, if the run is
// no longer the thread's, if it has a later answer that is not the reply, if every message of
// the turn was deleted, or if the input was incomplete and the run may be repeated.
func (e *endRunTx) store(reply Reply) bool {
	id := uuid.Must(uuid.NewV7()).String()
	m := &messages.Message{
		UUID: id, Thread: e.run.Thread, ExternalID: id, SenderID: "agent:" + e.run.Agent, Author: messages.ByAgent, Trigger: messages.TriggerNone,
		Content: reply.Content, Metadata: reply.Metadata(id, storage.Instant(e.now).Sub(e.run.BegunAt)), Version: messages.ContractVersion, Origin: messages.Live,
		SentAt: storage.Instant(e.now), CreatedAt: storage.Instant(e.now), Run: e.run.ID, Memory: true,
	}
	if !messages.InsertReply(e.Txn, m, e.run.Workspace, e.claim.Fence, e.run.BaseSeq, int64(len(reply.Files)), e.run.Answer != nil, e.run.Reruns >= maxReruns, e.run.Files) {
		return false
	}
	e.Message, e.added = m, 1
	messages.AddFiles(e.Txn, m, 0, reply.Files)
	e.events(reply.Events, Done, reply.Content)
	if rows := e.finished(); len(rows) > 0 { // they come before the reply
		seq := m.Seq
		messages.Renumber(e.Txn, m, seq+int64(len(rows)))
		e.added += e.addRows(rows, seq)
	}
	e.deliver(reply.Posts, reply.Send)
	e.ask(reply.Question)
	e.end(Done, "", reply.AnsweredAt)
	e.copy(reply.Copies, "")
	return true
}

// record writes the row of an ended run. Its steps, which have results of tools, are needed no more. A run that ends without its agent's
// last word takes its workstreams with it: no run waits for their results, and the next run launches its own.
func (e *endRunTx) record(state State, cause string, answeredAt time.Time) {
	e.State = state
	if state != Done && state != Quiet {
		workstreams.StopOf(e.Txn, e.run.ID, e.now) // before the state post, as every change of a workstream
		ForgetReports(e.Txn, e.run.Thread, e.run.ID)
	}
	e.Do(`INSERT INTO runs (id, thread, agent, state, begun_at, answered_at, ended_at, bot_channel, error, dropped, payer)
		SELECT $2, $1, $3, $4, $5, $6, CASE WHEN run_event_at < $7 THEN $7 ELSE run_event_at + 1 END, run_bot_channel, $8, run_dropped, $9 FROM threads WHERE id = $1`,
		e.run.Thread, e.run.ID, e.run.Agent, string(state), storage.Millis(e.run.BegunAt), storage.Millis(answeredAt), e.now, cause, payer(e.Txn, e.run))
	if e.run.Stepped {
		e.Do(`DELETE FROM run_steps WHERE run = $1`, e.run.ID)
	}
	if e.states {
		outbox.StateChanged(e.Txn, e.run.ID, e.now, false)
	}
}

// end closes the run, and the question that it had and nobody answered. The thread's next
// turn is due if messages wait for one.
func (e *endRunTx) end(state State, cause string, answeredAt time.Time) {
	e.record(state, cause, answeredAt)
	if state != Failed || !e.reopen() {
		Close(e.Txn, e.run.Question, "expired", "", e.now)
	}
	workstreams.RunEnded(e.Txn, e.run.ThreadKey, e.now)
	threads.EndRun(e.Txn, e.run.Thread, e.added, e.now, &e.More, &e.chunks)
}

// giveUp ends the run without an answer. If its turn has no message left, the next turn
// has its block.
func (e *endRunTx) giveUp(state State, cause string, notice outbox.Notice) {
	if e.left <= 0 {
		threads.SetBegun(e.Txn, e.run.Thread, e.run.ContextAfter)
	}
	e.tell(notice)
	e.end(state, cause, time.Time{})
}

// requeue ends the run without an answer and gives its messages back: the thread's next
// turn takes them at once.
func (e *endRunTx) requeue() {
	e.deliver(nil, nil)
	e.record(Interrupted, "interrupted by a newer message", time.Time{})
	messages.GiveBack(e.Txn, e.run.ID)
	threads.ReleaseRun(e.Txn, e.run.Thread, e.run.ContextAfter, e.now, &e.chunks)
}

// Unanswered describes the end of an attempt that has no answer.
type Unanswered struct {
	// State is the state in which the run ends: RunFailed, RunCanceled, RunQuiet, or RunInterrupted,
	// which leaves its messages to the thread's next turn. If it is RunUnfinished, another attempt
	// follows.
	State State
	// Cause is the cause of the end. An interrupted run has a cause of its own.
	Cause string
	// Notice informs the thread of the end, unless the run is interrupted.
	Notice outbox.Notice
	// Events are the agent's messages that AppendEvents has not stored.
	Events  []stream.Message
	Attempt Attempt
	// Copies tell programs of the end of the run.
	Copies []Copy

	// At is the time of the next attempt. If it is zero, a worker took the run too early, and its
	// time stays.
	At time.Time
	// Failed counts the attempt as a failed one.
	Failed bool
	// Taken says that the agent has taken the run and answers later. Its answer makes the run due
	// before At.
	Taken bool
	// Interruptible interrupts the run if a newer message waits, so that the next turn has both.
	Interruptible bool
}

// EndAttempt ends an attempt without an answer. It returns the time of the next attempt, which is
// zero if the run has ended.
func (r *Runs) EndAttempt(ctx context.Context, claim *threads.Claim, run *Run, u Unanswered) (next time.Time, err error) {
	e, err := storage.Write(ctx, r.db, storage.WriteOptions{Thread: claim.Key}, func(tx *storage.Txn) *endRunTx {
		e := &endRunTx{Txn: tx, now: storage.Millis(r.db.Now()), node: r.db.Node, shows: r.db.Shows, rows: r.db.Rows, states: r.states(run), run: run, claim: claim}
		e.read()
		e.events(u.Events, u.State, "")
		switch {
		case u.State == Interrupted, u.Interruptible && e.asked():
			e.requeue()
		case u.State != Unfinished:
			e.leaveRows()
			e.giveUp(u.State, u.Cause, u.Notice)
			e.copy(u.Copies, u.Notice.Text)
		default:
			e.postpone(u)
		}
		e.attempted(u.Attempt)
		return e
	})
	if err != nil {
		return time.Time{}, err
	}
	run.Followed, run.Copied = run.Followed || len(u.Events) > 0, e.Copied
	RunEnded(ctx, r.db, run.ID, run.Thread, run.Followed, e.chunks)
	wake(r.db, e.told)
	return e.next, nil
}

// postpone leaves the run to another attempt. A later answer that has arrived since makes it due
// at once. So does another agent that has the thread since: it must be asked itself.
func (e *endRunTx) postpone(u Unanswered) {
	at, removed := storage.Millis(u.At), e.agent != e.run.Agent
	if u.Taken && (e.answered || removed) {
		at, u.Taken = e.now, !removed
	}
	threads.PostponeRun(e.Txn, e.run.Thread, at, u.Failed, u.Taken, e.now, &e.next)
}
