package journal

import (
	"time"

	"github.com/google/uuid"

	"parley/ingest/event"
)

// begin begins the thread's next run with a message that is about to be stored,
// where the turn has nothing else to wait for. It spares a transaction; a run that
// waits for anything is begun by BeginRun.
func (r *recording) begin(m *Message) error {
	if !r.Begin || m.Trigger != TriggerRun || m.Author == ByBot || r.Coalesce > 0 ||
		r.thread.run != 0 || r.thread.turnSince != 0 || r.thread.pending > 1 || r.awaited {
		return nil
	}
	t := &r.thread
	b := beginning{tx: r.tx, now: r.now}
	run := &Run{
		ID: uuid.Must(uuid.NewV7()).String(), Thread: t.id, ThreadKey: event.ThreadKey(t.key), ThreadID: t.uuid,
		Workspace: r.Workspace, Platform: event.Platform(t.platform), Channel: t.channel, OpenedOn: t.openedOn, Agent: r.Agent,
		FirstSeq: m.Seq, ContextAfter: t.begunSeq, BaseSeq: m.Seq, Claims: 1, BegunAt: instant(r.now), Fence: r.lease.Fence,
	}
	preface, err := readPreface(t.preface)
	if err != nil {
		return err
	}
	run.Preface = preface
	r.out.Begun, t.begunSeq = run, run.BaseSeq
	return b.insert(run)
}

// runRow is the row of the run with an id; null for the empty id.
const runRow = `(SELECT runs.row FROM runs WHERE runs.id = ?)`

// begun is the id of the run that has begun; empty for none.
func (r *recording) begun() string {
	if r.out.Begun == nil {
		return ""
	}
	return r.out.Begun.ID
}

// has gives the run its messages, once the rows of both are known.
func (run *Run) has(messages ...Message) {
	for i := range messages {
		messages[i].Run = run.Row
	}
	run.Messages = messages
	run.sees(messages)
}

// sees notes that the agent is asked with the messages as they stand.
func (run *Run) sees(messages []Message) {
	run.Seen = time.Time{}
	for _, m := range messages {
		if m.EditedAt.After(run.Seen) {
			run.Seen = m.EditedAt
		}
	}
}
