package journal

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"parley/ingest/event"
	"parley/ingest/journal/budgets"
	"parley/ingest/journal/files"
	"parley/ingest/journal/places"
	"parley/ingest/journal/storage"
)

// Entry is a normalised event, ready to record.
type Entry struct {
	Envelope    int64  // the event's envelope
	MessageUUID string // UUID of the message that the envelope makes; empty makes a new one
	Workspace   string
	Event       event.Event
	Origin      Origin
	// Agent answers in this channel.
	Agent string
	// Coalesce is how long a turn waits for further messages, and CoalesceMax bounds that
	// wait. 0 begins the turn at once.
	Coalesce, CoalesceMax time.Duration
	// Begin means that the agent could begin soon. If the turn need not wait, its run
	// then begins in the transaction that records its message.
	Begin bool
	// Decide is the policy: it decides what this message, or this new state of one,
	// triggers. It is called inside the transaction, maybe twice, and must do nothing but
	// look. It is not called for deletes.
	Decide func(m *event.Message, look Look) Decision
	// Over decides instead if the message would ask for more runs than one of its budgets has.
	Over func(m *event.Message, look Look) Decision
}

// FilesWait bounds how long a turn waits for the files of one of its messages. iMessage tells of a file
// 0.35 to 3 seconds after its message.
const FilesWait = 4 * time.Second

// Decision is the policy's decision about a message.
type Decision struct {
	Trigger Trigger
	Reason  string
	// Ignore stores nothing of the message. Note stores its external id alone, so that an
	// edit which adds a mention is still recognised.
	Ignore, Note bool
	// NoMemory keeps the message out of every block and every later turn.
	NoMemory bool
	// AwaitsFiles lets the thread's next turn wait for files of the message that come later, at most
	// for FilesWait.
	AwaitsFiles bool
	// Metadata is stored with the message; it includes the run hints.
	Metadata []byte
	// Budgets are the counters of the run that the message asks for, if any. The first one also
	// remembers that the sender was told.
	Budgets []budgets.Budget
	// Notice tells the sender that a budget is exhausted, once in the first budget's window.
	// It is nil if the sender is told nothing.
	Notice *Notice
	// Answer is the answer to the thread's open question that a new message is; nil for none.
	Answer *Answer
	// Command is the chat command that a new message is; empty for none. Reply returns the
	// notice that answers it.
	Command Command
	Reply   func(ThreadState) *Notice
}

// Look answers the policy's queries from the store. After an error of the store the answers
// are zero values, and the transaction fails whatever the policy decides.
type Look interface {
	MessageLook
	ThreadLook
	LoopLook
}

// MessageLook is the part of Look about another message to which the message belongs.
type MessageLook interface {
	// Ours reports whether an external id belongs to a message of ours.
	Ours(externalID string) bool
	// Continued returns how the message addressed us whose rest m may be: one of the same author that
	// asked for a run just before. It is empty if there is none.
	Continued(m *event.Message) event.Addressed
}

// ThreadLook is the part of Look about the message's thread.
type ThreadLook interface {
	// Answered reports whether we have answered in the message's thread.
	Answered() bool
	// Question returns the open question of the message's thread; nil for none.
	Question() *Question
	// InvocationOnly reports whether only mentions of an agent trigger runs in the thread.
	InvocationOnly() bool
}

// LoopLook is the part of Look that bounds the runs of bots that answer each other.
type LoopLook interface {
	// BotRuns counts the runs that bots have begun in a channel since a time, and the
	// requested ones that have not begun, except one that this message would join. No
	// other message is counted in the channel until this one is recorded.
	BotRuns(channel string, since time.Time) int
	// Echoes counts the messages since a time that requested a run and repeat an earlier post
	// of ours in their thread word for word. It is 0 if the content repeats none. It looks at
	// the newest messages only.
	Echoes(content string, since time.Time) int
}

// RecordResult is the result of an envelope, with its effects.
type RecordResult struct {
	event.Result
	Kind    event.Kind
	Trigger Trigger
	// Thread is the key of the message's thread.
	Thread event.ThreadKey
	// Message is the new or changed message, or the first one of a duplicate; nil for
	// none.
	Message *Message
	// Waits means that the envelope waits for its target, or was moved to the target's
	// thread.
	Waits bool
	// TurnAt is when the turn that this event triggered is due; zero for none.
	TurnAt time.Time
	// TurnDue is when the thread's next turn, or its unfinished run, is due; zero for
	// never.
	TurnDue time.Time
	// Pending is the number of the thread's envelopes that are not recorded yet.
	Pending int64
	// Reaction was added to Message, or to the message that Message quotes, or was
	// removed from it; nil for other kinds.
	Reaction *event.Reaction
	// Withdrawn is the id of the run whose last message was deleted; empty for none.
	Withdrawn string
	// Stopped is the id of the run that the message has stopped; empty for none.
	Stopped string
	// Edited is the id of the run that has the message, if the message's text changed;
	// empty for none.
	Edited string
	// Begun is the run that began with the message; nil for none.
	Begun *Run
	// Admitted means that envelopes which waited for the message are in its thread now. Accepted
	// earlier, they come before the thread's other envelopes.
	Admitted bool
	// Told means that there are deliveries: of a notice to the message's sender, or of a change of
	// earlier posts.
	Told bool
}

// Record applies an entry to its thread and settles its envelope, in one transaction.
// ErrFenced means that another claim of the thread exists; ErrSettled, that the envelope
// is settled already.
func (j *Journal) Record(ctx context.Context, claim *places.Claim, entry Entry) (RecordResult, error) {
	r, err := storage.Write(ctx, j.db, storage.WriteOptions{Thread: claim.Key}, func(tx *storage.Txn) *recordTx {
		r := &recordTx{Txn: tx, Entry: entry, claim: claim, now: storage.Millis(j.db.Now()), out: &RecordResult{Kind: entry.Event.Kind, Trigger: TriggerNone, Thread: claim.Key}}
		if !r.recordNew() && r.Err == nil {
			r.run()
		}
		return r
	})
	if err != nil {
		return RecordResult{}, err
	}
	if r.copies {
		j.CopiesChanged()
	}
	if eraser, ok := j.db.Engine.(storage.Eraser); ok && r.erased {
		eraser.Erased()
	}
	if stopped := r.out.Stopped; stopped != "" {
		j.runEnded(ctx, &Run{ID: stopped, Thread: claim.Thread, Followed: true}, 1) // it may have chunks
	}
	if r.added > 0 || r.out.Disposition == event.Updated {
		places.ThreadChanged(j.db, claim.Thread, entry.Origin == API)
	}
	if r.added > 0 && entry.Event.Message != nil {
		places.NewsChanged(j.db, entry.Workspace, entry.Event.Message.Mentions...)
	}
	return *r.out, r.finish()
}

// recordTx is one Record inside its transaction.
type recordTx struct {
	Entry
	*storage.Txn
	claim  *places.Claim
	now    int64
	thread threadState
	out    *RecordResult

	// Set from the thread's row after the transaction has ended.
	runLeft int64  // messages of the unfinished run
	history string // of a run that began

	added   int64 // messages that got a thread_seq
	moved   int64 // envelopes that the message moved into its thread
	deleted int64 // deleted messages of the unfinished run
	// editedAt is the time of an edit of a message of the unfinished run; 0 for none.
	editedAt int64
	asks     *Message         // the event triggers a turn
	filed    bool             // a message waits for its files, or has them now
	belongs  int64            // the thread to which the envelope moves; 0 for this one
	awaited  bool             // envelopes wait for the message
	pending  bool             // the envelope is known to be pending in this thread
	copies   bool             // stored copies may have lost their last reference
	erased   bool             // words were removed
	notice   *Notice          // for the message's sender
	budgets  []budgets.Budget // of the message
	told     bool             // the sender was told in the first budget's window already
}

// threadState are the columns of a thread's row that intake needs.
type threadState struct {
	channel           string
	nextSeq, begunSeq int64
	run               string // the unfinished run; empty for none
	waiting           bool   // messages wait for a turn
	mode              places.ThreadMode
	question          string // the run whose question the next run gets; empty for none
}

// recordNew records a new message in three statements; most envelopes contain one. It
// returns false, and has written nothing, if the message needs a closer look: it may be
// ours, a bot's, known or the rest of another one, must be ignored, is a command or a pressed button, has
// budgets, or its thread is not open or has a question.
func (r *recordTx) recordNew() bool {
	e, m := r.Event, r.Event.Message
	if !e.Kind.MakesMessage() || e.Ignored != "" || mayBeOurs(m) || m.Own || m.ExternalID == "" || m.Pressed != "" || m.Continues {
		return false
	}
	decision := r.Decide(m, r)
	if decision.Ignore || decision.Note || decision.Command != "" || len(decision.Budgets) > 0 {
		return false
	}
	const fresh = ` AND mode = 'open' AND question = '' AND EXISTS (SELECT 1 FROM envelopes WHERE envelopes.id = $33 AND envelopes.thread = threads.id AND envelopes.state = 'pending')`
	if !r.insert(m, decision, insertMessage+fresh+insertMessageEnd, r.Envelope) {
		return false
	}
	r.pending = true
	r.end()
	return true
}

// run records any other event.
func (r *recordTx) run() {
	t := &r.thread
	places.Lock(r.Txn, r.claim, []any{&t.channel, &t.nextSeq, &t.begunSeq, &t.run, &t.waiting, (*string)(&t.mode), &t.question},
		`channel, next_seq, begun_seq, run_id, turn_since IS NOT NULL, mode, question`)
	e := r.Event
	switch {
	case e.Ignored != "":
		r.ignore(e.Ignored)
	case e.Kind.MakesMessage():
		r.message(e.Message)
	case e.Kind == event.KindEdit:
		r.edit()
	case e.Kind == event.KindDelete:
		r.delete()
	case e.Kind == event.KindReaction:
		r.reaction()
	case e.Kind == event.KindOther:
		r.out.Result = event.Result{Disposition: event.Updated}
	default:
		r.Fail(fmt.Errorf("an event of kind %q cannot be recorded", e.Kind))
	}
	r.end()
}

func (r *recordTx) ignore(reason string) { r.out.Result = *event.Ignore(reason) }

// message records a message that may be known already.
func (r *recordTx) message(m *event.Message) {
	if r.ours(m) {
		r.ignore(event.ReasonOwnMessage)
		return
	}
	if known := r.known(m); known != nil {
		r.again(known, m)
		return
	}
	decision := r.decide(m, nil)
	switch {
	case decision.Ignore:
		r.ignore(decision.Reason)
		if m.RunID != "" && decision.Reason == event.ReasonLimit { // frees the run's id for a later request
			r.Do(`UPDATE envelopes SET dedupe_key = 'limit:' || CAST(id AS TEXT) WHERE id = $1`, r.Envelope)
		}
	case !r.insert(m, decision, insertMessage+insertMessageEnd):
		r.Fail(fmt.Errorf("%w: another transaction stored the message meanwhile", storage.ErrUnavailable))
	}
}

// mayBeOurs reports whether we may have written the message, as far as its payload shows,
// or whether a program wrote it.
func mayBeOurs(m *event.Message) bool {
	fromMe := m.Metadata.IsFromMe != nil && *m.Metadata.IsFromMe
	return m.OwnKey != "" || fromMe || m.Metadata.SenderType == event.Bot
}

// ours reports whether we wrote the message. Ids alone decide. They are looked up only if
// the payload does not decide.
func (r *recordTx) ours(m *event.Message) bool {
	return m.Own || mayBeOurs(m) && r.Has(`SELECT 1 FROM deliveries WHERE key = $1 OR (workspace = $2 AND platform_id = $3) LIMIT 1`,
		m.OwnKey, r.Workspace, m.ExternalID)
}

// known finds the message, if it is stored.
func (r *recordTx) known(m *event.Message) *Message {
	if m.ExternalID != "" {
		if known := r.stored(m.ExternalID); known != nil || m.ClientMessageID == "" && m.RunID == "" {
			return known
		}
	}
	if m.RunID != "" {
		return find(r.Txn, `client_run_id = $1 AND thread = $2`, m.RunID, r.claim.Thread)
	}
	return find(r.Txn, `thread = $1 AND sender_id = $2 AND client_message_id = $3`, r.claim.Thread, m.Metadata.SenderID, m.ClientMessageID)
}

// stored finds the message with an external id; nil for none.
func (r *recordTx) stored(externalID string) *Message {
	return find(r.Txn, `workspace = $1 AND external_id = $2`, r.Workspace, externalID)
}

// newMessage returns the row of a message that is not stored yet.
func (r *recordTx) newMessage(m *event.Message, d Decision) *Message {
	row := &Message{
		UUID: r.MessageUUID, Thread: r.claim.Thread, ExternalID: m.ExternalID, ClientMessageID: m.ClientMessageID, ClientRunID: m.RunID,
		SenderID: m.Metadata.SenderID, Author: ByHuman, Trigger: d.Trigger, Reason: d.Reason, Content: m.Content, Metadata: d.Metadata,
		Version: ContractVersion, Origin: r.Origin, Quotes: quotesOf(m), Revision: m.Revision,
		SentAt: m.SentAt, CreatedAt: storage.Instant(r.now), files: int64(len(m.Attachments)),
	}
	if row.UUID == "" {
		row.UUID = uuid.Must(uuid.NewV7()).String()
	}
	if r.Envelope != 0 {
		row.addEnvelope(r.Envelope)
	}
	if m.Metadata.SenderType == event.Bot {
		row.Author = ByBot
	}
	if row.SentAt.IsZero() || row.SentAt.After(row.CreatedAt) {
		row.SentAt = row.CreatedAt
	}
	if d.Trigger == TriggerRun {
		row.Agent = r.Agent
	}
	if d.AwaitsFiles {
		row.filesUntil, r.filed = row.CreatedAt.Add(FilesWait), true
	}
	if d.Note {
		row.Content, row.Quotes, row.Trigger, row.files = "", Quotes{}, TriggerNone, 0
	}
	return row
}

// awaiting is the condition that an envelope waits for a target: $1 is the workspace, $2
// the target.
const awaiting = `envelopes.workspace = $1 AND envelopes.message_id = $2 AND envelopes.state = 'pending' AND envelopes.thread IS NULL`

// insertMessage stores a message with the thread's next thread_seq, and locks the thread
// for the rest of the transaction. If a run's id is given, and the turn need not wait,
// the run begins with the message.
const insertMessage = `
	INSERT INTO messages (id, thread, seq, workspace, external_id, client_message_id, sender_id, author, trigger, content, quotes,
		metadata, version, origin, revision, files, envelopes, sent_at, created_at, reason, agent, memory,
		sender_base_seq, latest_seen_seq, server_seq, client_run_id, run_input, files_until, continues, run, context_after, base_seq)
	SELECT $5, t.id, CASE WHEN $6 = 1 THEN t.next_seq END, $1, $7, $8, $9, $10, $11, $12, $13,
		$14, $15, $16, $17, $18, $19, $20, $21, $23, $24, $25,
		CAST($26 AS BIGINT), CAST($27 AS BIGINT), CASE WHEN $28 = 1 THEN t.next_seq - 1 END, $29, $30, $31, CAST($32 AS TEXT), t.begins, CASE WHEN t.begins IS NOT NULL THEN t.behind END, CASE WHEN t.begins IS NOT NULL THEN t.next_seq END
	FROM (SELECT id, next_seq, ` + contextAfter + ` AS behind, CASE WHEN $4 <> '' AND run_id IS NULL AND turn_since IS NULL AND pending = 1
			AND NOT EXISTS (SELECT 1 FROM envelopes WHERE ` + awaiting + `) THEN CAST($4 AS TEXT) END AS begins
		FROM threads WHERE id = $3 AND fence = $22`

const insertMessageEnd = ` FOR UPDATE) AS t WHERE true ON CONFLICT DO NOTHING
	RETURNING row, seq, run, context_after, EXISTS (SELECT 1 FROM envelopes WHERE ` + awaiting + `)`

// insert stores a message by insertMessage, maybe with a further condition on its thread and
// its arguments. It returns whether it did. A known message is not stored.
func (r *recordTx) insert(m *event.Message, d Decision, query string, more ...any) bool {
	row := r.newMessage(m, d)
	begins := ""
	if r.Begin && row.Trigger == TriggerRun && row.Author != ByBot && r.Coalesce == 0 && !d.AwaitsFiles {
		begins = runID(r.Txn, row.ClientRunID)
	}
	var contextAfter int64
	known := cmp.Or(m.Known, &event.Known{}) // by an agent outside Parley
	args := append([]any{r.Workspace, row.ExternalID, r.claim.Thread, begins, row.UUID, storage.Number(!d.Note), storage.Optional(row.ExternalID), storage.Optional(row.ClientMessageID), row.SenderID,
		string(row.Author), string(row.Trigger), row.Content, packQuotes(r.Txn, row.Quotes), storage.Bytes(row.Metadata), row.Version, string(row.Origin), row.Revision,
		row.files, row.envelopes, storage.Millis(row.SentAt), r.now, r.claim.Fence, row.Reason, row.Agent, storage.Number(!d.NoMemory),
		storage.Nullable(known.BaseSeq), storage.Nullable(known.LatestSeenSeq), storage.Number(m.Known != nil), storage.Optional(row.ClientRunID), string(m.RunInput), storage.Millis(row.filesUntil), r.continued(m)}, more...)
	if !r.Row([]any{&row.Row, &row.Seq, &row.Run, &contextAfter, &r.awaited}, query, args...) {
		return false
	}
	if !d.Note {
		r.added++
		addFiles(r.Txn, row, 0, m.Attachments)
		r.carry(row)
		r.mention(row, m)
	}
	r.out.Message, r.out.Trigger, r.notice = row, row.Trigger, d.Notice
	r.out.Result = event.Result{Disposition: event.Stored, Reason: d.Reason}
	if d.Note {
		r.out.Disposition = event.Ignored
	}
	if row.Trigger == TriggerRun {
		r.asks = row
	}
	if d.Command != "" {
		r.obey(row, d)
	}
	r.answer(row, d.Answer)
	if row.Run != "" {
		r.out.Begun = r.begun(row, m, contextAfter)
	}
	if r.awaited {
		r.moved += r.Exec(`UPDATE envelopes SET thread = $3, not_before = 0 WHERE `+awaiting, r.Workspace, m.ExternalID, r.claim.Thread)
		r.out.Admitted = true
	}
	return true
}

// splitWithin is the time within which the rest of a message comes.
const splitWithin = 2 * time.Second

// continued returns the unfinished run that has the message whose rest this one is; null for none.
func (r *recordTx) continued(m *event.Message) any {
	if !m.Continues || r.thread.run == "" || !r.Has(`SELECT 1 FROM messages WHERE run = $1 AND sender_id = $2 AND sent_at >= $3 LIMIT 1`,
		r.thread.run, m.Metadata.SenderID, storage.Millis(m.SentAt.Add(-splitWithin))) {
		return nil
	}
	return r.thread.run
}

// addFiles stores the message's files from a part on.
func addFiles(tx *storage.Txn, row *Message, part int, list []event.Attachment) {
	row.Attachments = append(row.Attachments, files.Add(tx, row.Row, part, list)...)
}

// end settles the envelope, or lets it wait for its target, and updates the thread's row.
func (r *recordTx) end() {
	if !r.moves() {
		r.settle()
	}
	r.count()
	r.saveThread()
}

// moves takes the envelope out of this thread, if it must wait for its target or belongs
// to the target's thread.
func (r *recordTx) moves() bool {
	if r.belongs != 0 {
		r.out.Waits = true
		r.Must(ErrSettled, `UPDATE envelopes SET thread = $3 WHERE `+workedOn, r.Envelope, r.claim.Thread, r.belongs)
		addPending(r.Txn, r.belongs, 1, r.now)
		return true
	}
	if r.out.Waits {
		r.out.Waits = r.Exec(`UPDATE envelopes SET thread = NULL, channel = $3 WHERE id = $1 AND thread = $2 AND state = 'pending'
			AND (accepted_at > $4 OR EXISTS (SELECT 1 FROM gaps WHERE gaps.workspace = envelopes.workspace AND gaps.channel = $3))`,
			r.Envelope, r.claim.Thread, r.thread.channel, r.now-WaitLimit.Milliseconds()) > 0
		if !r.out.Waits {
			r.ignore(event.ReasonUnknownMessage)
		}
	}
	return r.out.Waits
}

// settle ends the envelope. An envelope keeps its body only if a message has its words: not if it
// had no effect, and not if its message is deleted.
func (r *recordTx) settle() {
	var message any
	keeps := r.out.Disposition == event.Stored || r.out.Disposition == event.Updated
	if m := r.out.Message; m != nil {
		message, keeps = m.Row, keeps && m.DeletedAt.IsZero()
	}
	if !keeps {
		emptyBody(r.Txn, r.Envelope)
	}
	none := ErrSettled
	if r.pending {
		none = nil // the insert has checked that under the thread's lock
	}
	r.Must(none, `UPDATE envelopes SET state = 'done', disposition = $3, reason = $4, error = '', message = $5 WHERE `+workedOn,
		r.Envelope, r.claim.Thread, string(r.out.Disposition), r.out.Reason, message)
}

// mention gives the news to the actors that a message mentions.
func (r *recordTx) mention(row *Message, m *event.Message) {
	for _, actor := range m.Mentions {
		places.AddNews(r.Txn, r.Workspace, actor, r.claim.Thread, row.Row, r.now)
	}
}
