package journal

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"parley/ingest/event"
)

// Run is one time that an agent is asked.
type Run struct {
	Row       int64
	ID        string // the same each time the run is tried
	Thread    int64
	ThreadKey event.ThreadKey
	ThreadID  string // the UUID by which agents know the thread
	Workspace string
	Platform  event.Platform
	Channel   string
	// OpenedOn is the external id of the message of another thread on which the
	// thread was opened; empty for none.
	OpenedOn string
	// Preface is what was read of the time before the thread was known; nil where
	// nothing was looked for.
	Preface *Preface
	Agent   string
	// FirstSeq is the first thread_seq of its messages.
	FirstSeq int64
	// ContextAfter and BaseSeq bound its block: the passive messages after the
	// one and up to the other. BaseSeq is the newest message it is given.
	ContextAfter, BaseSeq int64
	Attempts              int64 // failures that were reported
	Claims                int64 // times it was begun or taken up again
	Reruns                int64
	BegunAt               time.Time
	NotBefore             time.Time // of the next attempt
	// Messages are what it answers, deleted ones left out.
	Messages []Message
	// Fence is that of the lease under which it was begun with its message; a run
	// that is handed on in memory is good for that lease alone.
	Fence int64
	// Previews is how many previews it has begun, those of earlier attempts among them.
	Previews int64
	// Sign is the external id of the message with the sign of work, empty for none,
	// and SignBy when the call ends that put it there; zero once it has ended.
	Sign   string
	SignBy time.Time
	// Fresh says that nothing has happened to Messages since they were recorded: a
	// transcript need not read them again.
	Fresh bool
	// Seen is the time of the newest edit that the agent was asked with; zero for
	// none. Transcript sets it anew. A later one makes the reply stale.
	Seen time.Time
}

// RunState is how a run stands.
type RunState string

// The states of a run.
const (
	RunRunning  RunState = "running"
	RunDone     RunState = "done"
	RunFailed   RunState = "failed"
	RunCanceled RunState = "canceled"
	RunDropped  RunState = "dropped"
	// RunInterrupted gave its messages back: another run has them.
	RunInterrupted RunState = "interrupted"
)

// BeginRun takes up the thread's unfinished run, or begins one for the messages
// that wait: all of them, or the first alone where each says that every message
// of the channel is a turn of its own. It returns nil where nothing is due, and
// while intake has something to record first; Outcome.TurnDue then says when.
func (j *Journal) BeginRun(ctx context.Context, lease *Lease, agent string, each func(workspace, channel string) bool) (*Run, error) {
	run, err := write(about(ctx, lease.Key), j, func(tx Tx) (*Run, error) {
		b := beginning{tx: tx, now: millis(j.now()), agent: agent, each: each}
		if err := b.read(lease); err != nil {
			return nil, err
		}
		switch {
		case b.turnAt == 0 || b.turnAt > b.now, b.current == 0 && b.whose != agent:
			return nil, nil // nothing is due, or nothing of this agent's any more
		case b.pending > 0 && b.intakeAt <= b.now:
			return nil, nil // an edit or a delete may be among what was acknowledged
		case b.current != 0:
			return b.resume()
		}
		return b.begin()
	})
	if run != nil {
		run.has(run.Messages...)
	}
	return run, err
}

// beginning is one BeginRun inside its transaction.
type beginning struct {
	tx    Tx
	now   int64
	agent string
	each  func(workspace, channel string) bool

	run      Run
	nextSeq  int64
	begunSeq int64
	turnAt   int64
	current  int64

	pending, intakeAt int64

	botChannel string // where a bot has asked for the turn
	whose      string // the agent whose turn is due
}

func (b *beginning) read(lease *Lease) error {
	var key, platform, preface string
	err := lockNow(b.tx, lease, []any{&key, &b.run.ThreadID, &b.run.Workspace, &platform, &b.run.Channel, &b.run.OpenedOn,
		&b.nextSeq, &b.begunSeq, &b.turnAt, &b.current, &b.pending, &b.intakeAt, &b.botChannel, &b.whose, &preface},
		`key, uuid, workspace, platform, channel, opened_on, next_seq, begun_seq, coalesce(turn_at, 0), run, pending, coalesce(intake_at, 0),
		coalesce(bot_channel, ''), agent, preface`)
	if err != nil {
		return err
	}
	b.run.Thread, b.run.ThreadKey, b.run.Platform = lease.Thread, event.ThreadKey(key), event.Platform(platform)
	b.run.Preface, err = readPreface(preface)
	return err
}

// resume takes up a run that was begun before and did not end.
func (b *beginning) resume() (*Run, error) {
	run := b.run
	run.Row = b.current
	var begunAt, notBefore, signBy int64
	if _, err := b.tx.Row([]any{&run.ID, &run.Agent, &run.FirstSeq, &run.ContextAfter, &run.BaseSeq, &run.Attempts, &run.Claims, &run.Reruns, &begunAt, &notBefore,
		&run.Previews, &run.Sign, &signBy},
		`UPDATE runs SET claims = claims + 1 WHERE row = ?
		RETURNING id, agent, first_seq, context_after, base_seq, attempts, claims, reruns, begun_at, not_before, previews, sign, sign_by`, run.Row); err != nil {
		return nil, err
	}
	run.BegunAt, run.NotBefore, run.SignBy = instant(begunAt), instant(notBefore), instant(signBy)
	messages, err := manyLines(b.tx, `run = ? AND author <> 'agent' AND deleted_at = 0 ORDER BY seq`, run.Row)
	run.Messages = messages
	return &run, err
}

// begin starts a run for the messages that wait; without any, the thread's turn
// is not due any more.
func (b *beginning) begin() (*Run, error) {
	limit := 1000
	if b.each(b.run.Workspace, b.run.Channel) {
		limit = 1
	}
	waiting, err := manyLines(b.tx, `thread = ? AND trigger = 'run' AND run IS NULL ORDER BY seq LIMIT CAST(? AS BIGINT)`,
		b.run.Thread, int64(limit+1))
	if err != nil {
		return nil, err
	}
	if len(waiting) == 0 {
		return nil, b.tx.Later(nil, nil, `UPDATE threads SET turn_at = NULL, turn_since = NULL, bot_channel = NULL WHERE id = ?`, b.run.Thread)
	}
	var since any // messages are left for a further turn
	if len(waiting) > limit {
		waiting, since = waiting[:limit], b.now
	}
	run := b.run
	run.ID, run.Agent = uuid.Must(uuid.NewV7()).String(), b.agent
	run.FirstSeq, run.ContextAfter, run.BaseSeq = waiting[0].Seq, b.begunSeq, b.nextSeq-1
	run.Claims, run.BegunAt, run.Messages = 1, instant(b.now), waiting
	if err := b.insert(&run); err != nil {
		return nil, err
	}
	if err := b.tx.Later(nil, nil, `UPDATE messages SET run = `+runRow+`
		WHERE thread = ? AND trigger = 'run' AND run IS NULL AND seq <= ?`, run.ID, run.Thread, waiting[len(waiting)-1].Seq); err != nil {
		return nil, err
	}
	return &run, b.tx.Later(nil, nil, `UPDATE threads SET run = `+runRow+`, begun_seq = ?, turn_since = ?,
			bot_channel = CASE WHEN bot_channel IS NOT NULL THEN (
				SELECT threads.bot_channel FROM messages WHERE messages.thread = threads.id AND `+botWaits+` LIMIT 1) END
		WHERE id = ?`, run.ID, run.BaseSeq, since, run.Thread)
}

// insert stores the run; its row is known once the transaction has ended.
func (b *beginning) insert(run *Run) error {
	asked := ""
	if slices.ContainsFunc(run.Messages, func(m Message) bool { return m.Author == ByBot }) {
		asked = b.botChannel // empty where the message was given back by a run: that one counts
	}
	return b.tx.Later(nil, []any{&run.Row}, `
		INSERT INTO runs (id, thread, agent, state, first_seq, context_after, base_seq, claims, begun_at, bot_channel)
		VALUES (?, ?, ?, 'running', ?, ?, ?, 1, ?, ?) RETURNING row`,
		run.ID, run.Thread, run.Agent, run.FirstSeq, run.ContextAfter, run.BaseSeq, b.now, optional(asked))
}
