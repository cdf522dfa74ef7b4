package journal

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/files"
	"parley/ingest/journal/storage"
)

// mayChange reports whether the event may change a stored message: the message is not
// deleted, and belongs to this thread. A message of another thread moves the envelope
// there. Only a message's own thread may read it and write it back, under the lock of the
// thread's row. The lock of the message's row is not enough: the thread's intake reads
// without it, and a delete must also see the current run and deliveries of the message.
func (r *recordTx) mayChange(m *Message) bool {
	r.out.Message = m
	switch {
	case !m.DeletedAt.IsZero():
		if r.out.Disposition == "" {
			r.ignore(event.ReasonDeleted)
		}
		return false
	case m.Thread != r.claim.Thread:
		r.belongs = m.Thread
		return false
	}
	return true
}

// again handles a message whose id is known: the second of two envelopes that report it,
// or on some platforms a newer state of it.
func (r *recordTx) again(known *Message, m *event.Message) {
	if known.Author == ByAgent {
		r.out.Message = known
		r.ignore(event.ReasonOwnMessage)
		return
	}
	if !r.mayChange(known) {
		return
	}
	changed := m.Revision != known.Revision || m.Revision == "" && m.Content != known.Content
	if known.Revision != "" && m.Revision == "" || isOlder(m, known) || known.Seq == 0 || m.RunID != "" {
		changed = false // an older state, one whose content is not stored, or the same run
	}
	r.revise(known, m, changed)
}

// edit applies a new state of a message.
func (r *recordTx) edit() {
	known, m := r.stored(r.Event.Targets[0]), r.Event.Message
	switch {
	case known == nil:
		r.unknown(event.ReasonOwnMessage)
	case known.Author == ByAgent:
		r.ignore(event.ReasonOwnMessage)
	case !r.mayChange(known):
	case m == nil || m.Revision == known.Revision || isOlder(m, known):
		r.ignore(event.ReasonNoChange)
	default:
		r.revise(known, m, true)
	}
}

// isOlder reports whether a state of a message was edited before the stored one. A platform sends
// an edit again that could not be accepted, maybe after a newer one.
func isOlder(m *event.Message, known *Message) bool {
	return len(known.Revision) >= m.Dated && m.Revision[:m.Dated] < known.Revision[:m.Dated]
}

// unknown ends an event whose target is not stored. If the target is a post of ours that
// only its delivery knows, the event is ignored for the given reason. Otherwise it waits.
func (r *recordTx) unknown(ours string) {
	if isPost(r.Txn, r.Workspace, r.Event.Targets[0]) {
		r.ignore(ours)
	} else {
		r.out.Waits = true
	}
}

func emptyBody(tx *storage.Txn, envelope int64) {
	tx.Do(`UPDATE envelopes SET body = $2 WHERE id = $1`, envelope, []byte{})
}

// revise updates a known message: its text if that was edited, new files, and its trigger
// if it triggers a run for the first time. A noted message is stored if the policy stores
// it now.
func (r *recordTx) revise(known *Message, m *event.Message, edited bool) {
	loadFiles(r.Txn, known)
	d := r.decide(r.completed(m, known), known)
	switch {
	case d.Ignore:
		r.ignore(d.Reason)
	case known.Seq == 0 && d.Note:
		known.Revision = m.Revision
		r.unchanged(d.Reason)
		r.saveMessage(known, nil)
	default:
		r.apply(known, m, d, edited)
		if !known.filesUntil.IsZero() && !d.AwaitsFiles {
			known.filesUntil, r.filed = time.Time{}, true
		}
		r.saveMessage(known, r.updateFiles(known, m, edited && m.AllFiles))
	}
}

// apply changes a message, and notes the effects on its thread. The author has edited its text
// if edited is set.
func (r *recordTx) apply(known *Message, m *event.Message, d Decision, edited bool) {
	noted := known.Seq == 0 // it gets a thread_seq and its text now
	decided := noted || r.raises(known, d)
	repeated := !edited && d.Reason == known.Reason      // the first payload has told the sender
	if decided || edited && d.Trigger == known.Trigger { // an edit cancels no run that was triggered before
		known.Metadata = d.Metadata
	}
	if edited || noted {
		known.Content, known.Quotes, known.Revision = m.Content, quotesOf(m), m.Revision
	}
	if edited {
		r.renewWords(known)
		known.EditedAt, r.out.Edited = storage.Instant(r.now), known.Run
		if known.Run != "" && known.Run == r.thread.run {
			r.editedAt = r.now
		}
	}
	if noted {
		known.Seq = r.thread.nextSeq
		r.added++
	}
	if decided {
		known.Trigger, known.Reason = d.Trigger, d.Reason
		if known.Trigger == TriggerRun {
			known.Agent, r.asks = r.Agent, known
			r.answer(known, d.Answer)
		}
	}
	if known.Trigger == TriggerPassive && !repeated {
		r.notice = d.Notice
	}
	if edited || decided {
		r.updated(known, d)
	} else {
		r.unchanged(event.ReasonNoChange)
	}
}

// updated returns the result of a change. If no run has taken the message, the result
// contains the message's trigger and its reason: that of this decision, or the stored one if
// the decision has no effect.
func (r *recordTx) updated(known *Message, d Decision) {
	r.out.Result = event.Result{Disposition: event.Updated}
	if known.Run != "" {
		return
	}
	r.out.Trigger, r.out.Reason = known.Trigger, known.Reason
	if known.Trigger == d.Trigger {
		r.out.Reason = d.Reason
	}
}

// unchanged returns the result of an event that changes nothing: a message is a
// duplicate, and an edit is ignored for a reason.
func (r *recordTx) unchanged(reason string) {
	r.ignore(reason)
	if r.Event.Kind.MakesMessage() {
		r.out.Result = event.Result{Disposition: event.Duplicate}
	}
}

// completed returns a message with the stored message's author and channel, as far as its payload
// has none.
func (r *recordTx) completed(m *event.Message, known *Message) *event.Message {
	if m.Metadata.SenderID != "" && m.Metadata.ChannelExternalID != "" {
		return m
	}
	whole, stored := *m, metadata(r.Txn, known)
	to := &whole.Metadata
	if to.SenderID == "" {
		to.Source, to.SenderID, to.SenderDisplayName, to.SenderType = stored.Source, stored.SenderID, stored.SenderDisplayName, stored.SenderType
		to.MentionToken, to.IsFromMe = stored.MentionToken, stored.IsFromMe
	}
	to.ChannelExternalID = cmp.Or(to.ChannelExternalID, stored.ChannelExternalID)
	to.Edited()
	return &whole
}

// raises reports whether the message triggers a run now, for the first time: no run has
// taken it, and an edit raises it only if no run has seen it either.
func (r *recordTx) raises(known *Message, d Decision) bool {
	if d.Trigger != TriggerRun || known.Trigger == TriggerRun || known.Run != "" {
		return false
	}
	return r.Event.Kind.MakesMessage() || known.Seq > r.thread.begunSeq && known.Origin != FromContext
}

// updateFiles drops the copies of files that the platform does not have any more: also of
// those that m does not list, if it lists all. It returns the files that the message does
// not have yet.
func (r *recordTx) updateFiles(known *Message, m *event.Message, all bool) (added []event.Attachment) {
	for _, file := range m.Attachments {
		if !file.Gone && !slices.ContainsFunc(known.Attachments, func(a files.Attachment) bool { return a.ID == file.ID }) {
			added = append(added, file)
		}
	}
	for i := range known.Attachments {
		a := &known.Attachments[i]
		gone := all
		if at := slices.IndexFunc(m.Attachments, func(file event.Attachment) bool { return a.ID == file.ID }); at >= 0 {
			gone = m.Attachments[at].Gone
			if words := m.Attachments[at].Words; words != "" && words != a.Words {
				files.SetWords(r.Txn, a, words)
			}
		}
		if !gone || a.State == files.Unavailable && a.Words == "" {
			continue
		}
		files.Drop(r.Txn, a)
		r.copies = true
	}
	return added
}

func (r *recordTx) saveMessage(m *Message, added []event.Attachment) {
	m.addEnvelope(r.Envelope)
	addFiles(r.Txn, m, len(m.Attachments), added)
	m.files += int64(len(added))
	r.Do(`UPDATE messages SET seq = nullif(CAST($2 AS BIGINT), 0), trigger = $3, content = $4, quotes = $5, metadata = $6,
		revision = $7, files = $8, envelopes = $9, edited_at = $10, reason = $11, agent = $12, files_until = $13 WHERE row = $1`,
		m.Row, m.Seq, string(m.Trigger), m.Content, packQuotes(r.Txn, m.Quotes), storage.Bytes(m.Metadata), m.Revision, m.files, m.envelopes, storage.Millis(m.EditedAt), m.Reason, m.Agent, storage.Millis(m.filesUntil))
	r.carry(m)
}

// delete blanks the targets, and the raw bodies that contain their words. The targets of
// other threads are left to those threads, one after the other. The envelope's own body
// is emptied when the last target is blank.
func (r *recordTx) delete() {
	found := false
	for _, target := range r.Event.Targets {
		known := r.stored(target)
		if known == nil { // the target may be the only post of a reply of ours
			known = find(r.Txn, replyOf+` AND NOT EXISTS (SELECT 1 FROM deliveries o WHERE o.run = d.run AND o.kind = 'post' AND o.id <> d.id))`, r.Workspace, target)
		}
		if known == nil { // other messages may quote a message that was never recorded
			r.dropWords(target, target)
			found = r.unpost(target) || found
			continue
		}
		found = true
		r.blank(known, target)
	}
	if !found {
		r.unknown(event.ReasonOwnMessage)
	}
}

// unpost closes the thread's question if a post of it was deleted: people cannot answer what they do
// not see. It returns false if the target is no such post.
func (r *recordTx) unpost(target string) bool {
	if r.thread.question == "" || r.Exec(`UPDATE deliveries SET buttons = '' WHERE workspace = $1 AND platform_id = $2 AND run = $3`,
		r.Workspace, target, r.thread.question) == 0 {
		return false
	}
	r.out.Result = event.Result{Disposition: event.Updated}
	r.unask(r.thread.question)
	return true
}

// replyOf is the condition that a message is the reply of a post of ours: $1 is the
// post's workspace, $2 its platform id. The user adds the closing bracket.
const replyOf = `author = 'agent' AND run = (SELECT d.run FROM deliveries d WHERE d.workspace = $1 AND d.platform_id = $2`

// blank empties a message, which the platform knows by an id.
func (r *recordTx) blank(m *Message, platformID string) {
	if !r.mayChange(m) {
		return
	}
	r.out.Result = event.Result{Disposition: event.Updated}
	m.Content, m.Quotes, m.Reactions, m.DeletedAt = "", Quotes{}, nil, storage.Instant(r.now)
	r.Do(`UPDATE messages SET content = '', quotes = '', reactions = '', files = 0, run_input = '', deleted_at = $2,
		trigger = CASE WHEN run IS NULL THEN 'none' ELSE trigger END WHERE row = $1`, m.Row, r.now)
	if m.files > 0 {
		files.Delete(r.Txn, m.Row)
		r.copies = true
	}
	r.blankMetadata(m)
	r.dropWords(m.ExternalID, platformID)
	if m.Author == ByAgent {
		r.blankReply(m)
		return
	}
	if m.Run != "" && m.Run == r.thread.run {
		r.deleted++
	}
	r.blankEnvelopes(m)
}

// blankMetadata removes the words of a message that are in its metadata.
func (r *recordTx) blankMetadata(m *Message) {
	metadata := metadata(r.Txn, m)
	if metadata.DropWords() {
		r.Do(`UPDATE messages SET metadata = $2 WHERE row = $1`, m.Row, metadata.Bytes())
	}
}

// blankEnvelopes empties the bodies that contain words of the message.
func (r *recordTx) blankEnvelopes(m *Message) {
	for id := range strings.FieldsFuncSeq(m.envelopes, func(c rune) bool { return c == ',' }) {
		n, err := strconv.ParseInt(id, 10, 64)
		if err != nil {
			r.Fail(fmt.Errorf("message %d: envelopes: %w", m.Row, err))
		}
		emptyBody(r.Txn, n)
	}
}

// blankReply empties the other rows that contain words of a reply of ours. A post that is
// still to be sent remains: its payload never changes.
func (r *recordTx) blankReply(m *Message) {
	r.copies = true
	r.Do(`DELETE FROM run_events WHERE run = $1`, m.Run)
	for _, column := range storage.Rows(r.Txn, storage.Self[string], `SELECT file FROM deliveries WHERE run = $1 AND file <> ''`, m.Run) {
		var file File
		if r.Fail(storage.Unpack(column, &file)); file.Path != "" {
			files.CheckCopy(r.Txn, file.Bucket, file.Path, time.Time{})
		}
	}
	r.Do(`UPDATE deliveries SET payload = '', file = '', buttons = '' WHERE run = $1 AND state NOT IN ('pending', 'sending')`, m.Run)
	r.unask(m.Run)
}
