package record

import (
	"cmp"
	"slices"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/files"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
)

// mayChange reports whether the event may change a stored message: the message is not
// deleted, and belongs to this thread. A message of another thread moves the envelope
// there. Only a message's own thread may read it and write it back, under the lock of the
// thread's row. The lock of the message's row is not enough: the thread's intake reads
// without it, and a delete must also see the current run and deliveries of the message.
func (r *recordTx) mayChange(m *messages.Message) bool {
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
func (r *recordTx) again(known *messages.Message, m *event.Message) {
	if known.Author == messages.ByAgent {
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
	case known.Author == messages.ByAgent:
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
func isOlder(m *event.Message, known *messages.Message) bool {
	return len(known.Revision) >= m.Dated && m.Revision[:m.Dated] < known.Revision[:m.Dated]
}

// unknown ends an event whose target is not stored. If the target is a post of ours that
// only its delivery knows, the event is ignored for the given reason. Otherwise it waits.
func (r *recordTx) unknown(ours string) {
	if outbox.IsPost(r.Txn, r.Workspace, r.Event.Targets[0]) {
		r.ignore(ours)
	} else {
		r.out.Waits = true
	}
}

// revise updates a known message: its text if that was edited, new files, and its trigger
// if it triggers a run for the first time. A noted message is stored if the policy stores
// it now.
func (r *recordTx) revise(known *messages.Message, m *event.Message, edited bool) {
	messages.LoadFiles(r.Txn, known)
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
		if !known.FilesUntil.IsZero() && !d.AwaitsFiles {
			known.FilesUntil, r.filed = time.Time{}, true
		}
		r.saveMessage(known, r.updateFiles(known, m, edited && m.AllFiles))
	}
}

// apply changes a message, and notes the effects on its thread. The author has edited its text
// if edited is set.
func (r *recordTx) apply(known *messages.Message, m *event.Message, d Decision, edited bool) {
	noted := known.Seq == 0 // it gets a thread_seq and its text now
	decided := noted || r.raises(known, d)
	repeated := !edited && d.Reason == known.Reason      // the first payload has told the sender
	if decided || edited && d.Trigger == known.Trigger { // an edit cancels no run that was triggered before
		known.Metadata = d.Metadata
	}
	if edited || noted {
		known.Content, known.Quotes, known.Revision = m.Content, messages.QuotesOf(m), m.Revision
	}
	if edited {
		r.renewWords(known)
		r.erased = runs.ForgetResults(r.Txn, r.Workspace, known.UUID) || r.erased
		known.EditedAt, r.out.Edited = storage.Instant(r.now), known.Run
		if known.Run != "" && known.Run == r.thread.Run {
			r.editedAt = r.now
		}
	}
	if noted {
		known.Seq = r.thread.NextSeq
		r.added++
	}
	if decided {
		known.Trigger, known.Reason = d.Trigger, d.Reason
		if known.Trigger == messages.TriggerRun {
			known.Agent, r.asks, r.waits = r.Agent, known, d.Waits
			r.answer(known, d.Answer)
		}
	}
	if known.Trigger == messages.TriggerPassive && !repeated {
		r.tells = d.Tell
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
func (r *recordTx) updated(known *messages.Message, d Decision) {
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
func (r *recordTx) completed(m *event.Message, known *messages.Message) *event.Message {
	if m.Metadata.SenderID != "" && m.Metadata.ChannelExternalID != "" {
		return m
	}
	whole, stored := *m, messages.MetadataOf(r.Txn, known)
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
func (r *recordTx) raises(known *messages.Message, d Decision) bool {
	if d.Trigger != messages.TriggerRun || known.Trigger == messages.TriggerRun || known.Run != "" {
		return false
	}
	return r.Event.Kind.MakesMessage() || known.Seq > r.thread.BegunSeq && known.Origin != messages.FromContext
}

// updateFiles drops the copies of files that the platform does not have any more: also of
// those that m does not list, if it lists all. It returns the files that the message does
// not have yet.
func (r *recordTx) updateFiles(known *messages.Message, m *event.Message, all bool) (added []event.Attachment) {
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

func (r *recordTx) saveMessage(m *messages.Message, added []event.Attachment) {
	m.AddEnvelope(r.Envelope)
	messages.AddFiles(r.Txn, m, len(m.Attachments), added)
	m.FileCount += int64(len(added))
	messages.Save(r.Txn, m)
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
			known = messages.ReplyOfOnly(r.Txn, r.Workspace, target)
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
	if r.thread.Question == "" || !outbox.DropButtons(r.Txn, r.Workspace, target, r.thread.Question) {
		return false
	}
	r.out.Result = event.Result{Disposition: event.Updated}
	r.unask(r.thread.Question)
	return true
}

// blank empties a message, which the platform knows by an id.
func (r *recordTx) blank(m *messages.Message, platformID string) {
	if !r.mayChange(m) {
		return
	}
	r.out.Result = event.Result{Disposition: event.Updated}
	messages.Empty(r.Txn, m, r.now)
	if m.FileCount > 0 {
		files.Delete(r.Txn, m.Row)
		r.copies = true
	}
	messages.EmptyMetadata(r.Txn, m)
	r.dropWords(m.ExternalID, platformID)
	runs.ForgetInputs(r.Txn, m.Thread, r.now)
	runs.ForgetResults(r.Txn, r.Workspace, m.UUID)
	if m.Author == messages.ByAgent {
		r.blankReply(m)
		return
	}
	if m.Run != "" && m.Run == r.thread.Run {
		r.deleted++
	}
	envelopes.EmptyBodies(r.Txn, m)
}

// blankReply empties the other rows that contain words of a reply of ours. A post that is
// still to be sent remains: its payload never changes.
func (r *recordTx) blankReply(m *messages.Message) {
	r.copies = true
	runs.DeleteEvents(r.Txn, m.Run)
	outbox.EmptyPosts(r.Txn, m.Run)
	r.unask(m.Run)
}
