package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"parley/ingest/card"
	"parley/ingest/event"
	"parley/ingest/journal/budgets"
	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/strangers"
	"parley/ingest/journal/threads"
	"parley/ingest/journal/workstreams"
)

// Entry is a normalised event, ready to record.
type Entry struct {
	Envelope    int64  // the event's envelope
	MessageUUID string // UUID of the message that the envelope makes; empty makes a new one
	Workspace   string
	Event       event.Event
	Origin      messages.Origin
	// Agent answers in this channel.
	Agent string
	// Coalesce is how long a turn waits for further messages, and CoalesceMax bounds that
	// wait. 0 begins the turn at once.
	Coalesce, CoalesceMax time.Duration
	// Begin means that the agent could begin soon. If the turn need not wait, its run
	// then begins in the transaction that records its message.
	Begin bool
	// Decide is the policy: it decides what this message, or this new state of one,
	// triggers. It is called inside the transaction, maybe several times, and must do nothing but
	// look. It is not called for deletes.
	Decide func(m *event.Message, look Look) Decision
	// Over decides instead if the message asks for a run and nothing is left of one of its budgets, which it gets.
	Over func(m *event.Message, look Look, spent budgets.Budget) Decision
	// Announce are the posts that show people the message, if it is new and the policy stores it, before its answer.
	Announce []outbox.Post
	// Notice returns the notice that a decision asks for, with its posts. Record calls it between two transactions, so
	// that no other commit waits for it. It is nil if no decision asks for one.
	Notice func(t Tell) outbox.Notice

	made *madeNotice // nil for none
}

// FilesWait bounds how long a turn waits for the files of one of its messages. iMessage tells of a file
// 0.35 to 3 seconds after its message.
const FilesWait = 4 * time.Second

// Decision is the policy's decision about a message.
type Decision struct {
	Trigger messages.Trigger
	Reason  string
	// Ignore stores nothing of the message. Note stores its external id alone, so that an
	// edit which adds a mention is still recognised.
	Ignore, Note bool
	// NoMemory keeps the message out of every block and every later turn.
	NoMemory bool
	// AwaitsFiles lets the thread's next turn wait for files of the message that come later, at most
	// for FilesWait.
	AwaitsFiles bool
	// Action is the metadata of the press of a card's button; nil for any other message.
	Action json.RawMessage
	// Metadata is stored with the message; it includes the run hints.
	Metadata []byte
	// Budgets are the counters of the run that the message asks for, if any. The first one also
	// remembers that the sender was told.
	Budgets []budgets.Budget
	// Tell is what people are told of the decision; that a budget is exhausted, once in the first budget's
	// window. It is nil if they are told nothing. The answer to a command has no Text.
	Tell *Tell
	// Waits lets the run of the message wait until the thread's open question is closed.
	Waits bool
	// Answer is the answer to the thread's open question that a new message is; nil for none.
	Answer *runs.Answer
	// Command is the chat command that a new message is; empty for none.
	Command Command
	Subject string // the word after the command; empty for none
	// Restart lets the message's turn and later ones see nothing from before the message.
	Restart bool
	// Asks is the question to approvers that an ignored message makes about its sender; nil for none. Its Envelope is kept, and people are told
	// as of a stored message.
	Asks *strangers.Stranger
	// Decides is the answer to such a question that an ignored press is; nil for none.
	Decides *Verdict
	// Above is the key of the thread of ours below whose first post the command stands: its workstreams are those of the command's
	// thread, too. It is empty for none.
	Above event.ThreadKey
}

// Verdict is an approver's answer to the question about a stranger. Only the first answer to a question counts.
type Verdict struct {
	Question string // as strangers.Stranger
	State    strangers.State
	By       string // sender_id
}

// Look answers the policy's queries from the store. After an error of the store the answers
// are zero values, and the transaction fails whatever the policy decides.
type Look interface {
	MessageLook
	ThreadLook
	LoopLook
	StrangerLook
}

// StrangerLook is the part of Look about people whom no list admits.
type StrangerLook interface {
	// Stranger returns what is known of a person.
	Stranger(sender string) strangers.Stranger
	// Carries reports whether an envelope has the message, or an earlier state of it.
	Carries(envelope int64) bool
	// StrangerOf returns the stranger about whom a question to approvers is.
	StrangerOf(question string) strangers.Stranger
	// Strangers counts the open questions of the workspace.
	Strangers() int
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
	Question() *runs.Question
	// CardButton returns the button of a card in the thread, by its id, and the agent that made the card; nil for none.
	CardButton(id string) (button *card.Press, agent string)
	// Pressed returns the button that has the action of a client, in an agent's card of the thread, and the agent; nil for none. It
	// looks at the newest messages of agents.
	Pressed(action json.RawMessage) (button *card.Press, agent string)
	// InvocationOnly reports whether only mentions of an agent trigger runs in the thread.
	InvocationOnly() bool
	// Said reports whether a sender has a message in the thread since a time that has a reason.
	Said(sender, reason string, since time.Time) bool
	// Quiet reports whether the last message of the message's thread is from before a time, and no run is unfinished there.
	Quiet(since time.Time) bool
}

// LoopLook is the part of Look that bounds the runs of bots that answer each other.
type LoopLook interface {
	// BotRuns counts the runs that bots have begun in a channel since a time, and the
	// requested ones that have not begun, except one that this message would join. No
	// other message is counted in the channel until this one is recorded.
	BotRuns(channel string, since time.Time) int
	// Cause returns the sender who asked for a run, or for the run that caused it, and whether neither a person nor a bot has asked for
	// the run itself; see runs.Run.Cause.
	Cause(run string) (sender string, alone bool)
	// OwnRuns counts the runs that Parley's own messages have begun in the thread since a time, and those of these messages that were
	// refused a run.
	OwnRuns(since time.Time) (runs, refused int)
	// Echoes counts the messages since a time that requested a run and repeat an earlier post
	// of ours in their thread word for word. It is 0 if the content repeats none. It looks at
	// the newest messages only.
	Echoes(content string, since time.Time) int
}

// Result is the result of an envelope, with its effects.
type Result struct {
	event.Result
	Kind    event.Kind
	Trigger messages.Trigger
	// Thread is the key of the message's thread.
	Thread event.ThreadKey
	// Message is the new or changed message, or the first one of a duplicate; nil for
	// none.
	Message *messages.Message
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
	// Unasked is the id of the run whose question was closed without an answer; empty for none.
	Unasked string
	// Edited is the id of the run that has the message, if the message's text changed;
	// empty for none.
	Edited string
	// Begun is the run that began with the message; nil for none.
	Begun *runs.Run
	// Admitted means that envelopes which waited for the message are in its thread now. Accepted
	// earlier, they come before the thread's other envelopes.
	Admitted bool
	// Strangers means that a stranger has asked, or that it was decided about one.
	Strangers bool
	// Told means that there are deliveries: of a notice to the message's sender, or of a change of
	// earlier posts.
	Told bool
}

// Record applies an entry to its thread and settles its envelope, in one transaction.
// ErrFenced means that another claim of the thread exists; ErrSettled, that the envelope
// is settled already.
func (s *Recorder) Record(ctx context.Context, claim *threads.Claim, entry Entry) (Result, error) {
	for {
		r, err := storage.Write(ctx, s.db, storage.WriteOptions{Thread: claim.Key}, func(tx *storage.Txn) *recordTx {
			r := s.begin(tx, claim, entry)
			if !r.recordNew() && r.Err == nil {
				r.run()
			}
			return r
		})
		if needs, ok := errors.AsType[*needsNoticeError](err); ok {
			entry.made = &madeNotice{needs.tell, entry.Notice(needs.tell)}
			continue // the next decision needs another notice only if the thread has changed meanwhile
		}
		if err != nil {
			return Result{}, err
		}
		return s.committed(ctx, r)
	}
}

func (s *Recorder) begin(tx *storage.Txn, claim *threads.Claim, entry Entry) *recordTx {
	return &recordTx{Txn: tx, Entry: entry, claim: claim, now: storage.Millis(s.db.Now()), rows: s.db.Rows, out: &Result{Kind: entry.Event.Kind, Trigger: messages.TriggerNone, Thread: claim.Key}}
}

// committed tells the readers about the changes of a committed Record, and returns its result.
func (s *Recorder) committed(ctx context.Context, r *recordTx) (Result, error) {
	claim, entry := r.claim, &r.Entry
	if r.copies {
		s.files.CopiesChanged()
	}
	if r.erased {
		s.db.Erased()
	}
	if stopped := r.out.Stopped; stopped != "" {
		runs.RunEnded(ctx, s.db, stopped, claim.Thread, true, 1) // it may have chunks, and readers on another node
	}
	if r.added > 0 || r.out.Disposition == event.Updated {
		threads.ThreadChanged(s.db, claim.Thread, entry.Origin == messages.API)
		workstreams.Changed(ctx, s.db, claim.Key)
	}
	if r.added > 0 && entry.Event.Message != nil {
		threads.NewsChanged(s.db, entry.Workspace, entry.Event.Message.Mentions...)
	}
	return *r.out, r.finish()
}

// recordTx is one Record inside its transaction.
type recordTx struct {
	Entry
	*storage.Txn
	claim  *threads.Claim
	now    int64
	thread threads.State
	out    *Result
	saved  threads.Changed // set after the transaction has ended

	added   int64 // messages that got a thread_seq
	moved   int64 // envelopes that the message moved into its thread
	deleted int64 // deleted messages of the unfinished run
	// editedAt is the time of an edit of a message of the unfinished run; 0 for none.
	editedAt int64
	asks     *messages.Message               // the event triggers a turn
	waits    bool                            // the turn waits for the answer to the thread's question
	filed    bool                            // a message waits for its files, or has them now
	belongs  int64                           // the thread to which the envelope moves; 0 for this one
	awaited  bool                            // envelopes wait for the message
	pending  bool                            // the envelope is known to be pending in this thread
	copies   bool                            // stored copies may have lost their last reference
	erased   bool                            // words were removed
	forgets  bool                            // they are to leave what agents remember, too
	state    ThreadState                     // of the thread before a command
	tells    *Tell                           // what people are told
	rows     func(workspace string) []string // as storage.DB.Rows
	budgets  []budgets.Budget                // of the message
	told     bool                            // the sender was told in the first budget's window already
	judged   *messages.Message               // the stored message about whose new state the policy decides; nil for none
	kept     bool                            // the envelope keeps its body, though no message has its words

	first *envelopes.First // recordFirst has recorded the message; nil if not
}

// recordNew records a new message in three statements; most envelopes contain one. It
// returns false, and has written nothing, if the message needs a closer look: it may be
// ours, a bot's, known or the rest of another one, must be ignored, is a command or a pressed button, has
// budgets, people are told something, or its thread is not open or has a question.
func (r *recordTx) recordNew() bool {
	m := r.Event.Message
	if !r.isPlain() {
		return false
	}
	decision := r.Decide(m, r)
	if !isPlain(decision) {
		return false
	}
	if !r.insert(m, decision, r.Envelope) {
		return false
	}
	r.pending = true
	r.end()
	return true
}

// isPlain reports whether the event is a person's new message, as far as its payload shows.
func (r *recordTx) isPlain() bool {
	e, m := r.Event, r.Event.Message
	return e.Kind.MakesMessage() && e.Ignored == "" && !mayBeOurs(m) && !m.Own && m.ExternalID != "" && m.Pressed == "" && !m.Continues && len(r.Announce) == 0 && !r.isForgotten(m)
}

// isForgotten reports whether a message that is read later is of a person who was forgotten after sending it.
func (r *recordTx) isForgotten(m *event.Message) bool {
	return (r.Origin == messages.Late || r.Origin == messages.FromContext) && messages.IsForgotten(r.Txn, r.Workspace, m.Metadata.SenderID, m.SentAt)
}

// isPlain reports whether a decision stores a message, counts no budget and tells nobody.
func isPlain(d Decision) bool {
	return !d.Ignore && !d.Note && d.Command == "" && len(d.Budgets) == 0 && d.Tell == nil && !d.Waits
}

// run records any other event.
func (r *recordTx) run() {
	r.thread = threads.Lock(r.Txn, r.claim)
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
	if r.isForgotten(m) {
		r.ignore(event.ReasonForgotten)
		return
	}
	decision := r.decide(m, nil)
	switch {
	case decision.Ignore:
		r.ignore(decision.Reason)
		r.stranger(&decision)
		if m.RunID != "" && m.Injected == nil && (decision.Reason == event.ReasonLimit || decision.Reason == event.ReasonPaused) { // frees the run's id for a later request
			envelopes.FreeKey(r.Txn, r.Envelope)
		}
	case !r.insert(m, decision, 0):
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
func (r *recordTx) known(m *event.Message) *messages.Message {
	if m.ExternalID != "" {
		if known := r.stored(m.ExternalID); known != nil || m.ClientMessageID == "" && m.RunID == "" {
			return known
		}
	}
	if m.RunID != "" {
		return messages.ByRunID(r.Txn, r.claim.Thread, m.RunID)
	}
	return messages.ByClientID(r.Txn, r.claim.Thread, m.Metadata.SenderID, m.ClientMessageID)
}

// stored finds the message with an external id; nil for none.
func (r *recordTx) stored(externalID string) *messages.Message {
	return messages.ByExternalID(r.Txn, r.Workspace, externalID)
}

// newMessage returns the row of a message that is not stored yet.
func (r *recordTx) newMessage(m *event.Message, d Decision) *messages.Message {
	row := &messages.Message{
		UUID: r.MessageUUID, Thread: r.claim.Thread, ExternalID: m.ExternalID, ClientMessageID: m.ClientMessageID, ClientRunID: m.RunID,
		SenderID: m.Metadata.SenderID, Author: messages.ByHuman, Trigger: d.Trigger, Reason: d.Reason, Content: m.Content, Metadata: d.Metadata,
		Version: messages.ContractVersion, Origin: r.Origin, Quotes: messages.QuotesOf(m), Revision: m.Revision,
		SentAt: m.SentAt, CreatedAt: storage.Instant(r.now), Memory: !d.NoMemory, FileCount: int64(len(m.Attachments)),
	}
	if row.UUID == "" {
		row.UUID = uuid.Must(uuid.NewV7()).String()
	}
	if r.Envelope != 0 {
		row.AddEnvelope(r.Envelope)
	}
	switch {
	case m.Internal != nil:
		row.Author = messages.BySystem
	case m.Metadata.SenderType == event.Bot:
		row.Author = messages.ByBot
	}
	if row.SentAt.IsZero() || row.SentAt.After(row.CreatedAt) {
		row.SentAt = row.CreatedAt
	}
	if d.Trigger == messages.TriggerRun {
		if row.Agent = r.Agent; m.LimitedAs != m.Metadata.SenderID {
			row.Quotes.Payer = m.LimitedAs
		}
	}
	if d.AwaitsFiles {
		row.FilesUntil, r.filed = row.CreatedAt.Add(FilesWait), true
	}
	if d.Note {
		row.Content, row.Quotes, row.Trigger, row.FileCount = "", messages.Quotes{}, messages.TriggerNone, 0
	}
	return row
}

// insert stores a message; see messages.Insert. It returns whether it did. A known message is not stored.
func (r *recordTx) insert(m *event.Message, d Decision, envelope int64) bool {
	row := r.newMessage(m, d)
	begins := r.begins(row, d)
	if d.Restart {
		r.newContext(r.thread.NextSeq - 1)
	}
	made, ok := messages.Insert(r.Txn, messages.Insertion{
		Message: row, Workspace: r.Workspace, Fence: r.claim.Fence, Now: r.now, Begins: begins, Noted: d.Note, NoMemory: d.NoMemory,
		Known: m.Known, RunInput: string(m.RunInput), Continues: r.continued(m),
	}, envelope)
	if !ok {
		return false
	}
	r.awaited = made.Awaited
	if !d.Note {
		r.added++
		messages.AddFiles(r.Txn, row, 0, m.Attachments)
		r.carry(row)
		r.mention(row, m)
	}
	r.out.Message, r.out.Trigger, r.tells = row, row.Trigger, d.Tell
	r.out.Result = event.Result{Disposition: event.Stored, Reason: d.Reason}
	if d.Note {
		r.out.Disposition = event.Ignored
	}
	if row.Trigger == messages.TriggerRun {
		r.asks, r.waits = row, d.Waits
	}
	if len(r.Announce) > 0 && !d.Note && d.Reason != event.ReasonPaused {
		runs.PostNotice(r.Txn, r.claim.Thread, r.Workspace, row.UUID, r.Announce, r.now)
		r.out.Told = true
	}
	if d.Command != "" {
		r.obey(row, &d)
	}
	r.answer(row, d.Answer)
	if row.Run != "" {
		r.out.Begun = r.begun(row, m, made.ContextAfter)
	}
	if r.awaited {
		r.moved += envelopes.AdmitWaiting(r.Txn, r.Workspace, m.ExternalID, r.claim.Thread)
		r.out.Admitted = true
	}
	return true
}

// begins returns the id of the run that may begin with a new message; empty if its turn must wait.
func (r *recordTx) begins(row *messages.Message, d Decision) string {
	if r.Begin && row.Trigger == messages.TriggerRun && row.Author != messages.ByBot && r.Coalesce == 0 && !d.AwaitsFiles && !d.Waits {
		return runs.RunID(r.Txn, row.ClientRunID)
	}
	return ""
}

// splitWithin is the time within which the rest of a message comes.
const splitWithin = 2 * time.Second

// continued returns the unfinished run that has the message whose rest this one is; null for none.
func (r *recordTx) continued(m *event.Message) any {
	if !m.Continues || r.thread.Run == "" || !r.Has(`SELECT 1 FROM messages WHERE run = $1 AND sender_id = $2 AND sent_at >= $3 LIMIT 1`,
		r.thread.Run, m.Metadata.SenderID, storage.Millis(m.SentAt.Add(-splitWithin))) {
		return nil
	}
	return r.thread.Run
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
		envelopes.MoveTo(r.Txn, r.Envelope, r.claim.Thread, r.belongs, r.now)
		return true
	}
	if r.out.Waits {
		r.out.Waits = envelopes.LetWait(r.Txn, r.Envelope, r.claim.Thread, r.thread.Channel, r.now)
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
	if !keeps && !r.kept {
		envelopes.EmptyBody(r.Txn, r.Envelope)
	}
	none := envelopes.ErrSettled
	if r.pending {
		none = nil // the insert has checked that under the thread's lock
	}
	envelopes.Settle(r.Txn, none, r.Envelope, r.claim.Thread, r.out.Result, message)
}

// mention gives the news to the actors that a message mentions.
func (r *recordTx) mention(row *messages.Message, m *event.Message) {
	for _, actor := range m.Mentions {
		threads.AddNews(r.Txn, r.Workspace, actor, r.claim.Thread, row.Row, r.now)
	}
}
