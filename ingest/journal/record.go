package journal

import (
	"context"
	"fmt"
	"time"

	"parley/ingest/event"
)

// Entry is a normalised event, ready to be recorded.
type Entry struct {
	Envelope  int64 // whose event it is
	Workspace string
	Event     event.Event
	Origin    Origin
	// Agent is who answers in this channel.
	Agent string
	// Coalesce is how long a turn waits for further messages, CoalesceMax how
	// long at the most; 0 begins it at once.
	Coalesce, CoalesceMax time.Duration
	// Begin says that the agent could begin soon. Where the turn waits for nothing,
	// its run then begins in the transaction that records its message.
	Begin bool
	// Decide is the policy: what this message, or this new state of one, asks
	// for. It is called inside the transaction, and must not do anything but
	// look. It is not called for deletes and reactions' targets.
	Decide func(m *event.Message, look Look) (Decision, error)
}

// Decision is what policy makes of a message.
type Decision struct {
	Trigger Trigger
	Reason  string
	// Ignore keeps nothing of the message; Note keeps its id alone, so that an
	// edit which adds a mention can still be recognised.
	Ignore, Note bool
	// Metadata is what is stored, run hints included.
	Metadata []byte
}

// Look lets policy see what only the store knows.
type Look interface {
	// Ours says whether an external id is a message of ours.
	Ours(externalID string) (bool, error)
	// BotRuns counts the runs that bots have begun in a channel since then, and
	// those that they have asked for there and that are still to begin, but for
	// one that this message would join. Nobody else counts in the channel until
	// the message is recorded.
	BotRuns(channel string, since time.Time) (int, error)
}

// Outcome is an envelope's fate, with what it did.
type Outcome struct {
	event.Fate
	Kind    event.Kind
	Trigger Trigger
	// Thread is the key of the message's thread.
	Thread event.ThreadKey
	// Message is what was made or changed, or the first one of a duplicate; nil for none.
	Message *Message
	// Waits says that the envelope was put aside until its subject comes, or
	// handed to the thread that its message is in.
	Waits bool
	// TurnAt is when the thread's next turn is due; zero for none.
	TurnAt time.Time
	// TurnDue is when the thread's next turn, or the run that is going, is due,
	// whatever asked for it; zero for never.
	TurnDue time.Time
	// Pending is how many envelopes of the thread are still to be worked on.
	Pending int64
	// Reaction is what was put on Message, or on the one that Message quotes, or
	// was taken from it; nil for other kinds.
	Reaction *event.Reaction
	// Deleted are the runs that lost a message.
	Deleted []int64
	// Edited is the run that has the message, where its text is another one now; 0
	// for none.
	Edited int64
	// Begun is the run that began with the message; nil for none.
	Begun *Run
	// Opened says that a person has opened the thread, which is new, and said nothing.
	Opened bool
}

// Record applies an entry to its thread and settles its envelope, in one
// transaction. ErrFenced means that the thread is somebody else's now.
func (j *Journal) Record(ctx context.Context, lease *Lease, entry Entry) (Outcome, error) {
	out, err := write(about(ctx, lease.Key), j, func(tx Tx) (Outcome, error) {
		out := Outcome{Kind: entry.Event.Kind, Trigger: TriggerNone}
		r := recording{tx: tx, Entry: entry, lease: lease, now: millis(j.now()), out: &out}
		err := r.run()
		return out, err
	})
	if out.Begun != nil {
		out.Begun.has(*out.Message)
		out.Begun.Fresh = len(out.Message.Attachments) == 0 // whose rows are not known
	}
	return out, err
}

// recording is one Record inside its transaction.
type recording struct {
	Entry
	tx      Tx
	lease   *Lease
	now     int64
	thread  threadState
	out     *Outcome
	moved   int64 // envelopes that this one's message let in
	belongs int64 // the thread to which the envelope must go; 0: it is here
	awaited bool  // envelopes wait for the message
	pending bool  // the envelope is known to be the thread's to work on
}

// threadState is the part of a thread's row that intake changes.
type threadState struct {
	id                         int64
	key, uuid, platform        string
	openedOn, channel          string
	nextSeq, begunSeq, pending int64
	turnAt, turnSince, run     int64
	agent                      string
	botChannel                 string // of the turn that waits, where a bot has asked for it
	viewing                    string // what its person is looking at
	preface                    string // what was read of the time before it was known
}

// read reads the row, by lock or lockNow.
func (t *threadState) read(tx Tx, lease *Lease, lock func(Tx, *Lease, []any, string) error) error {
	t.id = lease.Thread
	return lock(tx, lease, []any{&t.key, &t.uuid, &t.platform, &t.openedOn, &t.channel, &t.nextSeq, &t.begunSeq, &t.pending,
		&t.turnAt, &t.turnSince, &t.run, &t.agent, &t.botChannel, &t.viewing, &t.preface},
		`key, uuid, platform, opened_on, channel, next_seq, begun_seq, pending, coalesce(turn_at, 0), coalesce(turn_since, 0), run,
		agent, coalesce(bot_channel, ''), viewing, preface`)
}

func (r *recording) run() error {
	how := lockNow
	if r.looksFirst() {
		how = lock
	}
	if err := r.thread.read(r.tx, r.lease, how); err != nil {
		return err
	}
	if err := r.apply(); err != nil {
		return err
	}
	r.out.Thread = event.ThreadKey(r.thread.key)
	if err := r.settle(); err != nil {
		return err
	}
	return r.saveThread()
}

// looksFirst says that the event is looked up before anything of the thread is
// needed, so that the thread can be read together with that.
func (r *recording) looksFirst() bool {
	e := r.Event
	return e.Kind.MakesMessage() && e.Ignored == "" && !e.Message.Own && e.Message.ExternalID != ""
}

func (r *recording) apply() error {
	e := r.Event
	switch {
	case e.Ignored != "":
		r.ignore(e.Ignored)
		return nil
	case e.Kind.MakesMessage():
		return r.message(e.Message)
	case e.Kind == event.KindEdit:
		return r.edit()
	case e.Kind == event.KindDelete:
		return r.delete()
	case e.Kind == event.KindReaction:
		return r.reaction()
	case e.Viewing != nil:
		return r.view(e.Viewing)
	}
	return fmt.Errorf("an event of kind %q can't be recorded", e.Kind)
}

func (r *recording) ignore(reason string) { r.out.Fate = *event.Ignore(reason) }

// message records what was said, unless it is known already.
func (r *recording) message(m *event.Message) error {
	if ours, err := r.ours(m); err != nil || ours {
		r.ignore(event.ReasonOwnMessage)
		return err
	}
	known, err := r.known(m)
	if err != nil {
		return err
	}
	if known != nil {
		return r.again(known, m)
	}
	if m, err = r.viewed(m, nil); err != nil {
		return err
	}
	decision, err := r.Decide(m, r)
	if err != nil {
		return err
	}
	if decision.Ignore {
		r.ignore(decision.Reason)
		return nil
	}
	return r.insert(m, decision)
}

// ours says whether we wrote the message. Ids alone decide; they are looked up
// only where the payload does not rule it out.
func (r *recording) ours(m *event.Message) (bool, error) {
	if m.Own {
		return true, nil
	}
	fromMe := m.Metadata.IsFromMe != nil && *m.Metadata.IsFromMe
	if m.OwnKey == "" && !fromMe && m.Metadata.SenderType != event.Bot {
		return false, nil
	}
	var one int64
	return r.tx.Row([]any{&one}, `SELECT 1 FROM deliveries WHERE key = ?1 OR (workspace = ?2 AND platform_id = ?3) LIMIT 1`,
		m.OwnKey, r.Workspace, m.ExternalID)
}

// known finds the message, if it is stored, and sees whether envelopes wait for it.
func (r *recording) known(m *event.Message) (*Message, error) {
	if m.ExternalID != "" {
		var id int64 // nearly always there is none, and few columns tell it
		if _, err := r.tx.Row([]any{&id, &r.awaited, &r.pending}, `SELECT
				coalesce((SELECT id FROM messages WHERE workspace = ?1 AND external_id = ?2), 0),
				CASE WHEN EXISTS (SELECT 1 FROM envelopes WHERE workspace = ?1 AND subject = ?2 AND state = 'pending' AND thread IS NULL) THEN 1 ELSE 0 END,
				CASE WHEN EXISTS (SELECT 1 FROM envelopes WHERE id = ?3 AND thread = ?4 AND state = 'pending') THEN 1 ELSE 0 END`,
			r.Workspace, m.ExternalID, r.Envelope, r.thread.id); err != nil {
			return nil, err
		}
		switch {
		case !r.pending:
			return nil, ErrSettled
		case id != 0:
			return oneMessage(r.tx, `id = ?`, id)
		case m.ClientMessageID == "":
			return nil, nil
		}
	}
	return oneMessage(r.tx, `thread = ? AND sender_id = ? AND client_message_id = ?`,
		r.thread.id, m.Metadata.SenderID, m.ClientMessageID)
}

func (r *recording) insert(m *event.Message, d Decision) error {
	row := Message{
		Thread: r.thread.id, ExternalID: m.ExternalID, ClientMessageID: m.ClientMessageID, SenderID: m.Metadata.SenderID,
		Author: ByHuman, Trigger: d.Trigger, Content: m.Content, Metadata: d.Metadata, Version: ContractVersion, Origin: r.Origin,
		Quotes: Quotes{m.Quoted, m.Forwarded}, Revision: m.Revision,
		SentAt: m.SentAt, CreatedAt: instant(r.now), envelopes: withEnvelope("", r.Envelope),
	}
	if m.Metadata.SenderType == event.Bot {
		row.Author = ByBot
	}
	if row.SentAt.IsZero() {
		row.SentAt = row.CreatedAt
	}
	files := m.Attachments
	if d.Note {
		row.Content, row.Quotes, row.Trigger, files = "", Quotes{}, TriggerNone, nil
	} else {
		row.Seq = r.takeSeq()
	}
	if m.OpenedOn != "" && r.thread.openedOn == "" {
		r.thread.openedOn = m.OpenedOn
	}
	if err := r.begin(&row); err != nil {
		return err
	}
	if err := r.insertRow(&row, files); err != nil {
		return err
	}
	r.out.Message, r.out.Trigger = &row, row.Trigger
	r.out.Fate = event.Fate{Disposition: event.Stored, Reason: d.Reason}
	if d.Note {
		r.out.Disposition = event.Ignored
	}
	r.asks(&row, m.Channel.ID)
	return r.admit(m.ExternalID)
}

func (r *recording) takeSeq() int64 {
	seq := r.thread.nextSeq
	r.thread.nextSeq++
	return seq
}

func (r *recording) insertRow(row *Message, files []event.Attachment) error {
	quotes, err := pack(row.Quotes, row.Quotes.Quoted == nil && len(row.Quotes.Forwarded) == 0)
	if err != nil {
		return err
	}
	row.files = int64(len(files))
	var seq any
	if row.Seq != 0 {
		seq = row.Seq
	}
	store := func(query string, args ...any) error { return r.tx.Later(nil, []any{&row.Row}, query, args...) }
	if len(files) > 0 || row.Seq == 0 { // its id is needed at once
		store = func(query string, args ...any) error {
			_, err := r.tx.Row([]any{&row.Row}, query, args...)
			return err
		}
	}
	err = store(`
		INSERT INTO messages (thread, seq, workspace, external_id, client_message_id, sender_id, author, trigger, content, quotes,
			metadata, version, origin, revision, files, envelopes, sent_at, created_at, run)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, `+runRow+`) RETURNING id`,
		row.Thread, seq, r.Workspace, optional(row.ExternalID), optional(row.ClientMessageID), row.SenderID,
		string(row.Author), string(row.Trigger), row.Content, quotes,
		blob(row.Metadata), row.Version, string(row.Origin), row.Revision, row.files, row.envelopes, millis(row.SentAt), r.now, r.begun())
	if err != nil {
		return err
	}
	return addFiles(r.tx, row, 0, files)
}

// addFiles stores the message's files from part on.
func addFiles(tx Tx, row *Message, part int, files []event.Attachment) error {
	for i, file := range files {
		state := AttachmentPending
		if file.Gone {
			state = AttachmentUnavailable
		}
		if err := tx.Later(nil, nil, `INSERT INTO attachments (message, part, external_id, name, mime_type, size, state) VALUES (?, ?, ?, ?, ?, ?, ?)`,
			row.Row, int64(part+i), file.ID, file.Name, file.MimeType, file.Size, string(state)); err != nil {
			return err
		}
		row.Attachments = append(row.Attachments, Attachment{Attachment: file, State: state})
	}
	return nil
}

// asks makes the thread's next turn due, where the message asks for one.
func (r *recording) asks(m *Message, channel string) {
	if m.Trigger != TriggerRun {
		return
	}
	if m.Author == ByBot {
		r.thread.botChannel = botChannel(r.Workspace, r.channel(channel))
	}
	if r.out.Begun != nil {
		r.thread.turnAt, r.thread.agent, r.out.TurnAt = r.now, r.Agent, instant(r.now)
		return
	}
	if r.thread.turnSince == 0 {
		r.thread.turnSince = r.now
	}
	due := min(r.now+r.Coalesce.Milliseconds(), r.thread.turnSince+r.CoalesceMax.Milliseconds())
	r.thread.turnAt = max(due, r.now)
	r.thread.agent = r.Agent
	r.out.TurnAt = instant(r.thread.turnAt)
}

// admit lets in the envelopes that were waiting for this message.
func (r *recording) admit(subject string) error {
	if !r.awaited {
		return nil
	}
	n, err := admitWaiting(r.tx, r.Workspace, subject, r.thread.id)
	r.moved += n
	return err
}

// awaiting is the condition that an envelope waits for a subject.
const awaiting = ` WHERE workspace = ? AND subject = ? AND state = 'pending' AND thread IS NULL`

// admitWaiting gives the envelopes that wait for a subject to its thread.
func admitWaiting(tx Tx, workspace, subject string, thread int64) (int64, error) {
	return tx.Exec(`UPDATE envelopes SET thread = ?, not_before = 0`+awaiting, thread, workspace, subject)
}

// settle writes the envelope's end, or puts it aside. It fails where the
// envelope has come to an end already.
func (r *recording) settle() error {
	if r.belongs != 0 {
		r.out.Waits = true
		if err := r.tx.Later(ErrSettled, nil, `UPDATE envelopes SET thread = ? WHERE `+workedOn, r.belongs, r.Envelope, r.thread.id); err != nil {
			return err
		}
		return addPending(r.tx, r.belongs, 1, r.now)
	}
	if r.out.Waits {
		n, err := r.tx.Exec(`UPDATE envelopes SET thread = NULL WHERE `+workedOn+` AND accepted_at > ?`,
			r.Envelope, r.thread.id, r.now-WaitLimit.Milliseconds())
		if err != nil || n > 0 {
			return err
		}
		r.out.Waits = false
		r.ignore(event.ReasonUnknownMessage)
	}
	message, args := `NULL`, []any{string(r.out.Disposition), r.out.Reason}
	switch m := r.out.Message; {
	case m == nil:
	case m.Row != 0:
		message, args = `?`, append(args, m.Row)
	default: // it is being stored, and its place is known before its id
		message, args = `(SELECT id FROM messages WHERE thread = ? AND seq = ?)`, append(args, m.Thread, m.Seq)
	}
	none := ErrSettled
	if r.pending {
		none = nil // who has the thread's lock knows that it still is
	}
	return r.tx.Later(none, nil, `UPDATE envelopes SET state = 'done', disposition = ?, reason = ?, error = '', message = `+message+` WHERE `+workedOn,
		append(args, r.Envelope, r.thread.id)...)
}

func (r *recording) saveThread() error {
	r.thread.pending += r.moved - 1
	r.out.Pending, r.out.TurnDue = r.thread.pending, instant(r.thread.turnAt)
	var intakeAt, turnAt, turnSince any
	if r.thread.pending > 0 {
		intakeAt = r.now
	}
	if r.thread.turnAt != 0 {
		turnAt = r.thread.turnAt
	}
	if r.thread.turnSince != 0 {
		turnSince = r.thread.turnSince
	}
	return r.tx.Later(nil, nil, `UPDATE threads SET next_seq = ?, begun_seq = ?, pending = ?, intake_at = ?, turn_at = ?, turn_since = ?,
		run = coalesce(`+runRow+`, run), agent = ?, opened_on = ?, bot_channel = ? WHERE id = ?`,
		r.thread.nextSeq, r.thread.begunSeq, r.thread.pending, intakeAt, turnAt, turnSince,
		r.begun(), r.thread.agent, r.thread.openedOn, optional(r.thread.botChannel), r.lease.Thread)
}
