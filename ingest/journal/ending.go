package journal

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"parley/assembly/stream"
)

// Post is one piece of a reply as it will stand on the platform.
type Post struct {
	Channel, Root string
	Text          string
	// Asker is the platform's id of the user whom it answers; empty for none.
	Asker string
	// Alone says that nobody but the asker is to see it.
	Alone bool
	// File, where it is not nil, is put there beside the text.
	File *File
}

// File is a file of a reply: a text, or a copy that is kept elsewhere.
type File struct {
	Name     string `json:"name"`
	MimeType string `json:"mime_type"`
	Size     int64  `json:"size"`
	Text     string `json:"text,omitempty"`
	Bucket   string `json:"bucket,omitempty"`
	Path     string `json:"path,omitempty"`
}

// Reply is an agent's answer, ready to be committed.
type Reply struct {
	Content    string
	AnsweredAt time.Time // when its first token came
	Posts      []Post
	// Send, where it is set, begins the first delivery in the same transaction,
	// if nothing of the thread stands before it and its channel's pace allows it.
	Send   *Send
	Events []stream.Message
	// Metadata makes the message's metadata from its id and latency.
	Metadata func(messageID string, latency time.Duration) ([]byte, error)
	// Stale is what to do when the thread has moved on: send, rerun or drop.
	Stale string
	// Again says that the end of an earlier call with this reply is not known.
	Again bool
	// Interruptible gives up the reply where a newer message asks for a run, or one
	// that it answers was edited.
	Interruptible bool
}

// ReplyOutcome is what became of a reply.
type ReplyOutcome string

// The outcomes of CommitReply.
const (
	Committed   ReplyOutcome = "committed"
	Stale       ReplyOutcome = "stale"       // to be asked again, with what came since
	Dropped     ReplyOutcome = "dropped"     // kept with its reason, not sent
	Withdrawn   ReplyOutcome = "withdrawn"   // every message it answers was deleted
	Interrupted ReplyOutcome = "interrupted" // a newer message begins the turn again
)

// maxReruns is how often a stale reply is asked for again.
const maxReruns = 2

// CommitReply ends a run: the reply message, its deliveries and its events, in
// one transaction. After it the agent is not asked again.
func (j *Journal) CommitReply(ctx context.Context, lease *Lease, run *Run, reply Reply) (Ended, error) {
	return write(about(ctx, lease.Key), j, func(tx Tx) (Ended, error) {
		e := ending{tx: tx, now: millis(j.now()), run: run, lease: lease}
		if len(reply.Posts) > 0 {
			e.channel = reply.Posts[0].Channel
		}
		err := e.read()
		if reply.Again && errors.Is(err, ErrFenced) {
			return e.committed()
		}
		if err != nil {
			return Ended{}, err
		}
		ended := Ended{}
		ended.Outcome, ended.Message, err = e.commit(reply)
		ended.Begun, ended.More = e.begun, e.turnSince != 0
		return ended, err
	})
}

// Ended is what CommitReply has done.
type Ended struct {
	Outcome ReplyOutcome
	Message *Message // the reply, where it was committed
	// Begun is the first delivery, where it is marked as being sent already.
	Begun *Delivery
	// More says that messages wait for a further turn.
	More bool
}

// ending is the end of a run inside its transaction.
type ending struct {
	tx    Tx
	now   int64
	run   *Run
	lease *Lease

	nextSeq, begunSeq, turnSince, deliverAt int64
	left                                    int64 // 0: every message of the run was deleted
	edited                                  bool  // a message of the run is not as the agent has seen it

	channel string // where the reply is posted; empty where it is not
	blocked int64  // until when the channel must be left alone

	begun *Delivery
}

// read checks that the run is still the thread's, and ours. What is left of its
// messages is asked by a statement of its own, behind the lock: one that waits for
// a row sees other tables as they were before.
func (e *ending) read() error {
	var current int64
	if err := lock(e.tx, e.lease, []any{&e.nextSeq, &e.begunSeq, &e.turnSince, &e.deliverAt, &current},
		`next_seq, begun_seq, coalesce(turn_since, 0), coalesce(deliver_at, 0), run`); err != nil {
		return err
	}
	if _, err := e.tx.Row([]any{&e.left, &e.edited, &e.blocked}, `SELECT
			coalesce((SELECT 1 FROM messages WHERE run = ?1 AND author <> 'agent' AND deleted_at = 0 LIMIT 1), 0),
			CASE WHEN EXISTS (SELECT 1 FROM messages WHERE run = ?1 AND author <> 'agent' AND deleted_at = 0 AND edited_at > ?2) THEN 1 ELSE 0 END,
			coalesce((SELECT blocked_until FROM paces WHERE workspace = ?3 AND channel = ?4), 0)`,
		e.run.Row, millis(e.run.Seen), e.run.Workspace, e.channel); err != nil {
		return err
	}
	if current != e.run.Row {
		return ErrFenced
	}
	return nil
}

// committed is what an earlier call has done whose end was not known: under the
// same lease, the run's reply is there.
func (e *ending) committed() (ended Ended, err error) {
	if err := lockNow(e.tx, e.lease, []any{&e.turnSince}, `coalesce(turn_since, 0)`); err != nil {
		return ended, err
	}
	ended.Outcome, ended.More = Committed, e.turnSince != 0
	if ended.Message, err = oneMessage(e.tx, `run = ? AND author = 'agent'`, e.run.Row); err != nil {
		return ended, err
	}
	if ended.Message == nil {
		return ended, ErrFenced // it ended in another way
	}
	d, err := openDelivery(e.tx, e.run.Thread)
	if d != nil && d.State == DeliverySending && d.Key == DeliveryKey(e.run.ID, 0) {
		ended.Begun = d
	}
	return ended, err
}

func (e *ending) commit(reply Reply) (ReplyOutcome, *Message, error) {
	if e.left == 0 {
		return Withdrawn, nil, e.cancel("every message was deleted")
	}
	if reply.Interruptible && (e.turnSince != 0 || e.edited) {
		return Interrupted, nil, e.requeue()
	}
	stale, err := e.stale(reply.Stale)
	if err != nil {
		return "", nil, err
	}
	switch {
	case stale && reply.Stale == "rerun" && e.run.Reruns < maxReruns:
		return Stale, nil, e.rerun()
	case stale && reply.Stale == "drop":
		if err := e.events(reply.Events); err != nil {
			return "", nil, err
		}
		if err := e.clearAll(); err != nil {
			return "", nil, err
		}
		return Dropped, nil, e.end(RunDropped, "stale: the thread had moved on", reply.AnsweredAt)
	}
	message, err := e.insertReply(reply)
	if err != nil {
		return "", nil, err
	}
	if err := e.events(reply.Events); err != nil {
		return "", nil, err
	}
	if err := e.deliver(reply.Posts, reply.Send); err != nil {
		return "", nil, err
	}
	return Committed, message, e.end(RunDone, "", reply.AnsweredAt)
}

// stale says whether a message that takes part came after the turn's last, or one
// of the turn's was edited after the agent had seen it.
func (e *ending) stale(policy string) (bool, error) {
	if policy == "send" || e.edited || e.nextSeq-1 <= e.run.BaseSeq {
		return policy != "send" && e.edited, nil
	}
	var one int64
	return e.tx.Row([]any{&one}, `SELECT 1 FROM messages WHERE thread = ? AND seq > ? AND trigger <> 'none' AND author <> 'agent'
		AND deleted_at = 0 AND `+notContext+` LIMIT 1`, e.run.Thread, e.run.BaseSeq)
}

// rerun gives the run what has come since, to be asked again.
func (e *ending) rerun() error {
	if err := e.tx.Later(nil, nil, `UPDATE messages SET run = ? WHERE thread = ? AND trigger = 'run' AND run IS NULL`, e.run.Row, e.run.Thread); err != nil {
		return err
	}
	if err := e.tx.Later(nil, nil, `UPDATE runs SET reruns = reruns + 1, claims = claims - 1, base_seq = ?,
		bot_channel = coalesce(bot_channel, (SELECT threads.bot_channel FROM threads WHERE threads.id = runs.thread)) WHERE row = ?`,
		e.nextSeq-1, e.run.Row); err != nil {
		return err
	}
	return e.tx.Later(nil, nil, `UPDATE threads SET begun_seq = ?, turn_since = NULL, bot_channel = NULL, turn_at = ? WHERE id = ?`, e.nextSeq-1, e.now, e.run.Thread)
}

func (e *ending) insertReply(reply Reply) (*Message, error) {
	id := uuid.Must(uuid.NewV7()).String()
	metadata, err := reply.Metadata(id, instant(e.now).Sub(e.run.BegunAt))
	if err != nil {
		return nil, err
	}
	m := &Message{
		Thread: e.run.Thread, Seq: e.nextSeq, ExternalID: id, SenderID: "agent:" + e.run.Agent, Author: ByAgent, Trigger: TriggerNone,
		Content: reply.Content, Metadata: metadata, Version: ContractVersion, Origin: Live,
		SentAt: instant(e.now), CreatedAt: instant(e.now), Run: e.run.Row,
	}
	server := e.nextSeq - 1
	e.nextSeq++
	return m, e.tx.Later(nil, []any{&m.Row}, `
		INSERT INTO messages (thread, seq, workspace, external_id, sender_id, author, trigger, content, metadata, version, origin,
			sent_at, created_at, run, base_seq, latest_seen_seq, server_seq)
		VALUES (?1, ?2, ?3, ?4, ?5, 'agent', 'none', ?6, ?7, ?8, 'live', ?9, ?9, ?10, ?11, ?11, ?12) RETURNING id`,
		m.Thread, m.Seq, e.run.Workspace, m.ExternalID, m.SenderID, m.Content, m.Metadata, m.Version, e.now, m.Run, e.run.BaseSeq, server)
}

// maxRunEvents bounds what is kept of one run.
const maxRunEvents = 1000

func (e *ending) events(events []stream.Message) error {
	for i, m := range events[:min(len(events), maxRunEvents)] {
		var details any
		if len(m.Details) > 0 {
			details = []byte(m.Details)
		}
		final := int64(0)
		if m.Final {
			final = 1
		}
		if err := e.tx.Later(nil, nil, `INSERT INTO run_events (run, seq, type, workstream, activity, text, details, final, at)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			e.run.Row, int64(i+1), int64(m.Type), m.Workstream, m.ActivityID, m.Text, details, final, millis(m.Time)); err != nil {
			return err
		}
	}
	return nil
}

// end closes the run; the thread's next turn is due if messages wait for one.
func (e *ending) end(state RunState, cause string, answeredAt time.Time) error {
	if err := e.tx.Later(nil, nil, `UPDATE runs SET state = ?, ended_at = ?, answered_at = ?, error = ? WHERE row = ?`,
		string(state), e.now, millis(answeredAt), cause, e.run.Row); err != nil {
		return err
	}
	return e.tx.Later(nil, nil, `UPDATE threads SET run = 0, next_seq = ?, begun_seq = ?, deliver_at = ?,
		turn_at = CASE WHEN turn_since IS NULL THEN NULL ELSE turn_at END WHERE id = ?`, e.nextSeq, e.begunSeq, e.deliverDue(), e.run.Thread)
}

// deliverDue is when the thread's deliveries are due; nil where there are none.
func (e *ending) deliverDue() any {
	if e.deliverAt == 0 {
		return nil
	}
	return e.deliverAt
}

// cancel ends the run without an answer. Where nothing is left of its turn, the
// next one has its block.
func (e *ending) cancel(cause string) error {
	if e.left == 0 {
		e.begunSeq = e.run.ContextAfter
	}
	if err := e.clearAll(); err != nil {
		return err
	}
	return e.end(RunCanceled, cause, time.Time{})
}

// requeue ends the run without an answer and gives its messages back, to be
// taken by the thread's next turn at once.
func (e *ending) requeue() error {
	if err := e.clearAll(); err != nil {
		return err
	}
	if err := e.tx.Later(nil, nil, `UPDATE messages SET run = NULL WHERE run = ? AND deleted_at = 0`, e.run.Row); err != nil {
		return err
	}
	if err := e.tx.Later(nil, nil, `UPDATE runs SET state = ?, ended_at = ?, error = ? WHERE row = ?`,
		string(RunInterrupted), e.now, "interrupted by a newer message", e.run.Row); err != nil {
		return err
	}
	return e.tx.Later(nil, nil, `UPDATE threads SET run = 0, begun_seq = ?, turn_since = coalesce(turn_since, ?), turn_at = ?, deliver_at = ? WHERE id = ?`,
		e.run.ContextAfter, e.now, e.now, e.deliverDue(), e.run.Thread)
}

func (j *Journal) endRun(ctx context.Context, lease *Lease, run *Run, how func(e *ending) error) error {
	return j.engine.Write(about(ctx, lease.Key), func(tx Tx) error {
		e := ending{tx: tx, now: millis(j.now()), run: run, lease: lease}
		if err := e.read(); err != nil {
			return err
		}
		return how(&e)
	})
}

// CancelRun ends a run without an answer: its messages are all gone, or nobody
// wants one any more.
func (j *Journal) CancelRun(ctx context.Context, lease *Lease, run *Run, cause string) error {
	return j.endRun(ctx, lease, run, func(e *ending) error { return e.cancel(cause) })
}

// InterruptRun gives up a run for a newer message: the next turn has both.
func (j *Journal) InterruptRun(ctx context.Context, lease *Lease, run *Run) error {
	return j.endRun(ctx, lease, run, func(e *ending) error { return e.requeue() })
}

// RetryRun counts a failed attempt; the run is due again at a later time. The
// claim that comes to its end with this is not counted any more.
func (j *Journal) RetryRun(ctx context.Context, lease *Lease, run *Run, at time.Time, cause error) error {
	return j.endRun(ctx, lease, run, func(e *ending) error {
		if err := e.tx.Later(nil, nil, `UPDATE runs SET attempts = attempts + 1, claims = claims - 1, not_before = ?, error = ? WHERE row = ?`,
			millis(at), cause.Error(), run.Row); err != nil {
			return err
		}
		return e.tx.Later(nil, nil, `UPDATE threads SET turn_at = ? WHERE id = ?`, millis(at), run.Thread)
	})
}

// FailRun ends a run without an answer. The notice, if any, tells the thread;
// it stands outside the transcript.
func (j *Journal) FailRun(ctx context.Context, lease *Lease, run *Run, cause error, notice []Post, events []stream.Message) error {
	return j.endRun(ctx, lease, run, func(e *ending) error {
		if err := e.events(events); err != nil {
			return err
		}
		if err := e.deliver(notice, nil); err != nil {
			return err
		}
		return e.end(RunFailed, cause.Error(), time.Time{})
	})
}
