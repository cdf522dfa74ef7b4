package journal

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"parley/ingest/event"
)

// again handles a message whose id is known: the other one of two envelopes
// that tell of it, or on some platforms a newer state of it.
func (r *recording) again(known *Message, m *event.Message) error {
	r.out.Message = known
	if known.Author == ByAgent {
		r.ignore(event.ReasonOwnMessage)
		return nil
	}
	if !known.DeletedAt.IsZero() {
		return r.tooLate()
	}
	if r.isElsewhere(known) {
		return nil
	}
	if err := known.load(r.tx); err != nil {
		return err
	}
	changed := m.Revision != known.Revision || m.Revision == "" && m.Content != known.Content
	if known.Revision != "" && m.Revision == "" || known.Seq == 0 {
		changed = false // an older state, or one whose content is not kept
	}
	return r.revise(known, m, changed, event.Duplicate)
}

// edit applies a new state of a message.
func (r *recording) edit() error {
	known, err := oneMessage(r.tx, `workspace = ? AND external_id = ?`, r.Workspace, r.Event.Targets[0])
	switch {
	case err != nil:
		return err
	case known == nil:
		return r.unknown(event.ReasonOwnMessage)
	case known.Author == ByAgent:
		r.ignore(event.ReasonOwnMessage)
		return nil
	}
	r.out.Message = known
	m := r.Event.Message
	if !known.DeletedAt.IsZero() {
		return r.tooLate()
	}
	if r.isElsewhere(known) {
		return nil
	}
	if err := known.load(r.tx); err != nil {
		return err
	}
	if m == nil || m.Revision == known.Revision {
		r.ignore(event.ReasonNoChange)
		return r.tells(known)
	}
	return r.revise(known, m, true, event.Ignored)
}

// isElsewhere says that a message is another thread's, and hands the envelope to
// that one. What is read of a message and written back is its thread's own work
// alone, under the lock of its row: locking the message's row would not do, since
// that thread's intake reads it without, and a delete must also meet the run that
// has the message, and its deliveries, as they are.
func (r *recording) isElsewhere(m *Message) bool {
	if m.Thread == r.thread.id {
		return false
	}
	r.belongs = m.Thread
	return true
}

// unknown ends what is about a message that is not stored: a post of ours that
// is known by its delivery alone has the reason ours, anything else waits.
func (r *recording) unknown(ours string) error {
	mine, err := r.Ours(r.Event.Targets[0])
	if mine {
		r.ignore(ours)
	} else {
		r.out.Waits = true
	}
	return err
}

// tooLate ends a new state of a deleted message, and keeps none of its words.
func (r *recording) tooLate() error {
	r.ignore(event.ReasonDeleted)
	return emptyBody(r.tx, r.Envelope)
}

func emptyBody(tx Tx, envelope int64) error {
	return tx.Later(nil, nil, `UPDATE envelopes SET body = ? WHERE id = ?`, []byte{}, envelope)
}

// tells notes that the envelope holds words of the message, so that they go
// when it is deleted.
func (r *recording) tells(m *Message) error {
	m.envelopes = withEnvelope(m.envelopes, r.Envelope)
	return r.tx.Later(nil, nil, `UPDATE messages SET envelopes = ? WHERE id = ?`, m.envelopes, m.Row)
}

// revise brings a known message up to date: its text where that has changed,
// files that are new, and its trigger where it now asks for a run that nobody
// has begun. One that was only noted is stored where policy keeps it now. What
// changes nothing is unchanged.
func (r *recording) revise(known *Message, m *event.Message, changed bool, unchanged event.Disposition) error {
	m, err := r.viewed(m, known)
	if err != nil {
		return err
	}
	decision, err := r.Decide(keepIdentity(m, known), r)
	if err != nil {
		return err
	}
	if decision.Ignore {
		r.ignore(decision.Reason)
		return r.tells(known)
	}
	if known.Seq == 0 && decision.Note {
		return r.stillNoted(known, m, decision, unchanged)
	}
	if err := r.loseFiles(known, m); err != nil {
		return err
	}
	added := newFiles(known, m)
	stored, raised := known.Seq == 0, r.raises(known, decision)
	if changed || stored {
		known.Content, known.Quotes, known.Revision = m.Content, Quotes{m.Quoted, m.Forwarded}, m.Revision
	}
	if changed {
		known.EditedAt, r.out.Edited = instant(r.now), known.Run
		known.Metadata = rehint(known, decision)
	}
	if stored {
		known.Seq = r.takeSeq()
	}
	if stored || raised {
		known.Trigger, known.Metadata = decision.Trigger, decision.Metadata
		r.asks(known, m.Channel.ID)
	}
	if !changed && !stored && !raised && (len(added) == 0 || unchanged == event.Duplicate) {
		r.out.Fate = unchangedFate(unchanged, event.ReasonNoChange)
	} else {
		r.updated(known, decision)
	}
	return r.saveMessage(known, added)
}

// updated is the fate of a change, with what its message asks for still. One that
// a run has taken asks for nothing more, and an edit takes back no run that was
// asked for: the reason is then not this one's.
func (r *recording) updated(known *Message, d Decision) {
	r.out.Fate = event.Fate{Disposition: event.Updated}
	if known.Run != 0 {
		return
	}
	r.out.Trigger = known.Trigger
	if known.Trigger == d.Trigger {
		r.out.Reason = d.Reason
	}
}

// stillNoted remembers the new state of a message without its content.
func (r *recording) stillNoted(known *Message, m *event.Message, d Decision, unchanged event.Disposition) error {
	r.out.Fate = unchangedFate(unchanged, d.Reason)
	known.Revision = m.Revision
	return r.saveMessage(known, nil)
}

// unchangedFate is the fate of what changes nothing: a duplicate, or ignored for a reason.
func unchangedFate(disposition event.Disposition, reason string) event.Fate {
	if disposition == event.Duplicate {
		return event.Fate{Disposition: event.Duplicate}
	}
	return *event.Ignore(reason)
}

// keepIdentity fills in what an update's payload leaves out.
func keepIdentity(m *event.Message, known *Message) *event.Message {
	if m.Metadata.ChannelExternalID != "" {
		return m
	}
	stored, err := event.ReadMetadata(known.Metadata)
	if err != nil {
		return m
	}
	merged := *m
	merged.Metadata.ChannelExternalID = stored.ChannelExternalID
	merged.Metadata.Edited()
	return &merged
}

// raises says whether the message asks for a run now, for the first time: no
// run has taken it, and an edit only where no run has seen it either.
func (r *recording) raises(known *Message, d Decision) bool {
	if d.Trigger != TriggerRun || known.Trigger == TriggerRun || known.Run != 0 {
		return false
	}
	return r.Event.Kind.MakesMessage() || known.Seq > r.thread.begunSeq && known.Origin != FromContext
}

// rehint is the metadata of an edited message: the new payload's, unless the
// edit would take back a run that was asked for.
func rehint(known *Message, d Decision) []byte {
	if d.Trigger != known.Trigger {
		return known.Metadata
	}
	return d.Metadata
}

// newFiles are the files that the message does not have yet.
func newFiles(known *Message, m *event.Message) []event.Attachment {
	return slices.DeleteFunc(slices.Clone(m.Attachments), func(file event.Attachment) bool {
		return slices.ContainsFunc(known.Attachments, func(a Attachment) bool { return a.ID == file.ID })
	})
}

// loseFiles lets go of the copies of files that the platform does not have any more.
func (r *recording) loseFiles(known *Message, m *event.Message) error {
	for _, file := range m.Attachments {
		i := slices.IndexFunc(known.Attachments, func(a Attachment) bool { return a.ID == file.ID })
		if !file.Gone || i < 0 || known.Attachments[i].State == AttachmentUnavailable {
			continue
		}
		a := &known.Attachments[i]
		a.State, a.Bucket, a.Path = AttachmentUnavailable, "", ""
		if err := r.tx.Later(nil, nil, `UPDATE attachments SET state = ?, bucket = '', path = '', sha256 = '' WHERE id = ?`,
			string(a.State), a.Row); err != nil {
			return err
		}
	}
	return nil
}

func (r *recording) saveMessage(m *Message, added []event.Attachment) error {
	quotes, err := pack(m.Quotes, m.Quotes.Quoted == nil && len(m.Quotes.Forwarded) == 0)
	if err != nil {
		return err
	}
	m.envelopes = withEnvelope(m.envelopes, r.Envelope)
	if err := addFiles(r.tx, m, len(m.Attachments), added); err != nil {
		return err
	}
	m.files += int64(len(added))
	var seq any
	if m.Seq != 0 {
		seq = m.Seq
	}
	return r.tx.Later(nil, nil, `UPDATE messages SET seq = ?, trigger = ?, content = ?, quotes = ?, metadata = ?, revision = ?, files = ?,
		envelopes = ?, edited_at = ? WHERE id = ?`,
		seq, string(m.Trigger), m.Content, quotes, blob(m.Metadata), m.Revision, m.files, m.envelopes, millis(m.EditedAt), m.Row)
}

// delete blanks the targets, and the raw bodies that told of them. Those of other
// threads are left to these, one thread after the other; the envelope's own body
// goes when nobody needs it any more.
func (r *recording) delete() error {
	found := false
	for _, target := range r.Event.Targets {
		known, err := oneMessage(r.tx, `workspace = ? AND external_id = ?`, r.Workspace, target)
		if err != nil {
			return err
		}
		if known == nil {
			if known, err = r.replyOf(target); err != nil {
				return err
			}
		}
		if known == nil {
			continue
		}
		found = true
		if err := r.blank(known, target); err != nil {
			return err
		}
	}
	switch {
	case !found:
		return r.unknown(event.ReasonOwnMessage)
	case r.belongs != 0:
		return nil
	}
	return emptyBody(r.tx, r.Envelope)
}

// replyOf finds the reply that a post of ours carries alone; nil for none.
func (r *recording) replyOf(platformID string) (*Message, error) {
	return oneMessage(r.tx, `author = 'agent' AND run = (
			SELECT d.run FROM deliveries d WHERE d.workspace = ? AND d.platform_id = ?
			AND NOT EXISTS (SELECT 1 FROM deliveries o WHERE o.run = d.run AND o.kind = 'post' AND o.id <> d.id))`, r.Workspace, platformID)
}

// blank empties a message, which the platform knows by an id.
func (r *recording) blank(m *Message, platformID string) error {
	r.out.Message = m
	if !m.DeletedAt.IsZero() {
		if r.out.Disposition == "" {
			r.ignore(event.ReasonDeleted)
		}
		return nil
	}
	if r.isElsewhere(m) {
		return nil
	}
	r.out.Fate = event.Fate{Disposition: event.Updated}
	m.Content, m.Quotes, m.Reactions, m.Attachments, m.DeletedAt = "", Quotes{}, nil, nil, instant(r.now)
	if err := r.tx.Later(nil, nil, `UPDATE messages SET content = '', quotes = '', reactions = '', files = 0, deleted_at = ?,
		trigger = CASE WHEN run IS NULL THEN 'none' ELSE trigger END WHERE id = ?`, r.now, m.Row); err != nil {
		return err
	}
	if err := r.tx.Later(nil, nil, `DELETE FROM attachments WHERE message = ?`, m.Row); err != nil {
		return err
	}
	if err := r.blankQuotes(m, platformID); err != nil {
		return err
	}
	if m.Author == ByAgent {
		return r.blankReply(m)
	}
	if m.Run != 0 {
		r.out.Deleted = append(r.out.Deleted, m.Run)
	}
	return r.blankEnvelopes(m)
}

// blankQuotes takes the message's words from those behind it in its thread that
// quote it.
func (r *recording) blankQuotes(m *Message, platformID string) error {
	quoting := map[int64]Quotes{}
	err := r.tx.Rows(func(scan func(...any) error) error {
		var row int64
		var column string
		var quotes Quotes
		if err := scan(&row, &column); err != nil {
			return err
		}
		if err := unpack(column, &quotes); err != nil {
			return fmt.Errorf("message %d: quotes: %w", row, err)
		}
		if q := quotes.Quoted; q != nil && (q.ExternalID == platformID || q.ExternalID == m.ExternalID) {
			quoting[row] = Quotes{Forwarded: quotes.Forwarded}
		}
		return nil
	}, `SELECT id, quotes FROM messages WHERE thread = ? AND seq > ? AND quotes <> ''`, m.Thread, m.Seq)
	if err != nil {
		return err
	}
	for row, left := range quoting {
		column, err := pack(left, len(left.Forwarded) == 0)
		if err != nil {
			return err
		}
		if err := r.tx.Later(nil, nil, `UPDATE messages SET quotes = ? WHERE id = ?`, column, row); err != nil {
			return err
		}
	}
	return nil
}

// blankEnvelopes empties the bodies of all that told of the message.
func (r *recording) blankEnvelopes(m *Message) error {
	if m.envelopes == "" {
		return nil
	}
	for id := range strings.SplitSeq(m.envelopes, ",") {
		n, err := strconv.ParseInt(id, 10, 64)
		if err != nil {
			return fmt.Errorf("message %d: envelopes: %w", m.Row, err)
		}
		if err := emptyBody(r.tx, n); err != nil {
			return err
		}
	}
	return nil
}

// blankReply empties what else holds the words of a reply of ours. A post that
// is still to be sent stays: its payload never changes.
func (r *recording) blankReply(m *Message) error {
	if err := r.tx.Later(nil, nil, `DELETE FROM run_events WHERE run = ?`, m.Run); err != nil {
		return err
	}
	return r.tx.Later(nil, nil, `UPDATE deliveries SET payload = '', file = '' WHERE run = ? AND state NOT IN ('pending', 'sending')`, m.Run)
}
