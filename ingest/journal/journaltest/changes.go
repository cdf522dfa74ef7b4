package journaltest

import (
	"fmt"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/files"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/record"
)

func editPromises() []promise {
	return []promise{
		{"an edit is applied if its revision is not the last one", editApplied},
		{"an edit before the run changes the agent's input", editBeforeRun},
		{"an edit that adds a mention triggers one run, if no run saw the message", editRaises},
		{"an edit that adds a mention triggers no run if a run has seen the message", editAfterRun},
		{"a noted message is stored by an edit that addresses us", editOfNoted},
		{"an edit of a noted message that triggers nothing stores no words", editStillNoted},
		{"an edit of a deleted message changes nothing and stores no words", editAfterDelete},
		{"an edit by a refused author changes nothing", editRefused},
		{"an edit from before the last one changes nothing, if revisions show their time", editLate},
		{"an edit adds files", editFiles},
		{"a removed file is unavailable at once, and its copy is removed", goneFiles},
		{"an edit that lists all files removes the others", removedFiles},
		{"an edit of another thread's message moves to that thread", editElsewhere},
	}
}

func editApplied(f *fixture) {
	f.message(threadKey(1), said("C1/1", "one"), passive)
	noChange := *event.Ignore(event.ReasonNoChange)
	same(f, "no revision", f.change(threadKey(1), edited("C1/1", "one", ""), passive).Result, noChange)
	same(f, "first edit", f.change(threadKey(1), edited("C1/1", "two", "5"), passive).Disposition, event.Updated)
	same(f, "sent again", f.change(threadKey(1), edited("C1/1", "two", "5"), passive).Result, noChange)
	f.clock.advance(1e9)
	result := f.change(threadKey(1), edited("C1/1", "three", "3"), passive)
	same(f, "a lower revision", result.Disposition, event.Updated)
	same(f, "message", result.Message.Content, "three")
	same(f, "the revision before the last", f.change(threadKey(1), edited("C1/1", "two", "5"), passive).Disposition, event.Updated)
	got := f.list(threadKey(1))[0]
	same(f, "content", got.Content, "two")
	same(f, "edited", got.EditedAt, f.clock.Now())
	whole := event.Event{Kind: event.KindEdit, Targets: []string{"C1/1"}}
	same(f, "without the message", f.change(threadKey(1), whole, passive).Result, noChange)
}

// editLate edits a message at 5 and at 7, and the first edit comes last. Within one time, the order
// is unknown.
func editLate(f *fixture) {
	at := func(revision, content string) event.Event {
		e := edited("C1/1", content, revision)
		e.Message.Dated = 1
		return e
	}
	f.message(threadKey(1), said("C1/1", "one"), passive)
	f.change(threadKey(1), at("7.1", "newest"), passive)
	late := f.change(threadKey(1), at("5.9", "@bot older"), mentions)
	same(f, "late", late.Result, *event.Ignore(event.ReasonNoChange))
	again := at("5.9", "@bot older").Message
	same(f, "late, as a message", f.message(threadKey(1), again, passive).Disposition, event.Duplicate)
	same(f, "content", f.lines(threadKey(1)), []string{"1 newest"})
	f.change(threadKey(1), deleted("C1/1"), passive)
	same(f, "bodies with words", f.count("envelopes WHERE kind <> 'delete' AND length(body) > 0"), 0)
	f.message(threadKey(1), said("C1/2", "two"), passive)
	second := at("7.0", "in the same second")
	second.Targets, second.Message.ExternalID = []string{"C1/2"}, "C1/2"
	f.change(threadKey(1), edited("C1/2", "first", "7.1"), passive)
	same(f, "in one time", f.change(threadKey(1), second, passive).Disposition, event.Updated)
}

func editBeforeRun(f *fixture) {
	f.message(threadKey(1), said("C1/1", "@bot one"), mentions)
	result := f.change(threadKey(1), edited("C1/1", "two", "2"), mentions)
	same(f, "trigger", result.Trigger, messages.TriggerRun)
	same(f, "reason", result.Reason, event.ReasonMention) // the stored one, because the edit has taken the mention away
	same(f, "asked", contents(f.begin(threadKey(1)).Messages), []string{"two"})
}

func editRaises(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), mentions)
	result := f.change(threadKey(1), edited("C1/1", "@bot hi", "2"), mentions)
	same(f, "result", result.Result, event.Result{Disposition: event.Updated, Reason: event.ReasonMention})
	run := f.begin(threadKey(1))
	same(f, "asked", contents(run.Messages), []string{"@bot hi"})
	f.change(threadKey(1), edited("C1/1", "@bot hi!", "3"), mentions)
	f.commit(run, answer("Hello."))
	same(f, "turns", f.due(turns), nil)
}

func editAfterRun(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), mentions)
	f.exchange(threadKey(1), "C1/2", "@bot what?", "Nothing.")
	result := f.change(threadKey(1), edited("C1/1", "@bot hi", "2"), mentions)
	same(f, "result", result.Result, event.Result{Disposition: event.Updated, Reason: event.ReasonNoMention})
	same(f, "trigger", result.Trigger, messages.TriggerPassive)
	same(f, "turns", f.due(turns), nil)
}

func editOfNoted(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), noted)
	f.message(threadKey(1), said("C1/2", "ho"), noted)
	f.message(threadKey(1), said("C1/3", "hum"), passive)
	e := edited("C1/1", "@bot hi", "2")
	e.Message.Attachments = []event.Attachment{{ID: "F1", Name: "a"}}
	result := f.change(threadKey(1), e, triggers)
	same(f, "result", result.Result, event.Result{Disposition: event.Updated, Reason: event.ReasonMention})
	same(f, "asked", contents(f.begin(threadKey(1)).Messages), []string{"@bot hi"})
	same(f, "kept passively", f.change(threadKey(1), edited("C1/2", "ho ho", "2"), passive).Trigger, messages.TriggerPassive)
	same(f, "thread", f.lines(threadKey(1)), []string{"1 hum", "2 @bot hi", "3 ho ho"})
	same(f, "files", len(f.list(threadKey(1))[1].Attachments), 1)
}

func editStillNoted(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), noted)
	same(f, "result", f.change(threadKey(1), edited("C1/1", "secret", "2"), noted).Result, *event.Ignore(event.ReasonNotAddressed))
	same(f, "words kept", f.count("messages WHERE content <> ''"), 0)
	same(f, "sent again", f.change(threadKey(1), edited("C1/1", "secret", "2"), noted).Result, *event.Ignore(event.ReasonNoChange))
}

func editAfterDelete(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), passive)
	f.change(threadKey(1), deleted("C1/1"), nil)
	accepted := f.accept(f.envelope(event.KindEdit, threadKey(1), "C1/1"))
	result := f.record(accepted.Thread, accepted.ID, edited("C1/1", "@bot hi", "2"), triggers)
	same(f, "result", result.Result, *event.Ignore(event.ReasonDeleted))
	same(f, "raw bytes", len(f.body(accepted.ID)), 0)
	same(f, "thread", f.lines(threadKey(1)), []string{"1 -"})
}

func editRefused(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), passive)
	same(f, "result", f.change(threadKey(1), edited("C1/1", "ho", "2"), refused).Result, *event.Ignore(event.ReasonUserRefused))
	same(f, "thread", f.lines(threadKey(1)), []string{"1 hi"})
}

func editFiles(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), passive)
	e := edited("C1/1", "hi", "2")
	e.Message.Attachments = []event.Attachment{{ID: "F1", Name: "a"}}
	same(f, "result", f.change(threadKey(1), e, passive).Disposition, event.Updated)
	same(f, "files", len(f.list(threadKey(1))[0].Attachments), 1)
}

func goneFiles(f *fixture) {
	m := said("C1/1", "look")
	m.Attachments = []event.Attachment{{ID: "F1", Name: "a", Words: "a paste"}, {ID: "F2", Name: "b", Words: "b", Gone: true}}
	f.message(threadKey(1), m, passive)
	attached := f.list(threadKey(1))[0].Attachments
	same(f, "the first", attached[0].State, files.Pending)
	same(f, "the second", attached[1].State, files.Unavailable)
	attached[0].State, attached[0].Bucket, attached[0].Path = files.Stored, "bucket", "ab/cd"
	f.must(f.Files.SetAttachment(f.ctx, attached[0], "abcd"))
	e := edited("C1/1", "look", "2")
	e.Message.Attachments = []event.Attachment{{ID: "F1", Gone: true}, {ID: "F2", Gone: true}}
	f.change(threadKey(1), e, passive)
	f.must(f.Files.SetAttachment(f.ctx, attached[0], "abcd")) // the node that copied the file is too late
	for _, file := range f.list(threadKey(1))[0].Attachments {
		same(f, file.Name, []string{string(file.State), file.Path}, []string{string(files.Unavailable), ""})
	}
	same(f, "kept sums", f.count("attachments WHERE sha256 <> ''"), 0)
	same(f, "kept words", f.count("attachments WHERE words <> ''"), 0)
}

func removedFiles(f *fixture) {
	m := said("C1/1", "look")
	m.Attachments = []event.Attachment{{ID: "F1", Name: "stays"}, {ID: "F2", Name: "removed"}}
	f.message(threadKey(1), m, passive)
	for _, file := range f.list(threadKey(1))[0].Attachments {
		f.stored(file, "ab/"+file.Name)
	}
	e := edited("C1/1", "look", "2")
	e.Message.Attachments = m.Attachments[:1]
	f.change(threadKey(1), e, passive)
	same(f, "after an edit that may omit files", f.removed(), nil)
	e = edited("C1/1", "look", "3")
	e.Message.Attachments, e.Message.AllFiles = m.Attachments[:1], true
	f.change(threadKey(1), e, passive)
	same(f, "removed", f.removed(), []string{"ab/removed"})
	states := each(f.list(threadKey(1))[0].Attachments, func(a files.Attachment) files.State { return a.State })
	same(f, "states", states, []files.State{files.Stored, files.Unavailable})
}

// handed records an event of the second thread about a message of the first thread: in
// the second thread, which passes it on, and then in the first. It also returns the
// envelope.
func (f *fixture) handed(e event.Event) (int64, record.Result) {
	f.Helper()
	accepted := f.accept(f.envelope(e.Kind, threadKey(2), e.Targets[0]))
	result := f.record(accepted.Thread, accepted.ID, e, passive)
	same(f, "moved to the first thread", result.Waits, true)
	same(f, "pending", result.Pending, 0)
	same(f, "raw bytes stored", len(f.body(accepted.ID)) > 0, true)
	first := f.thread(threadKey(1))
	same(f, "envelopes of the first thread", each(f.next(first), func(p envelopes.Pending) int64 { return p.ID }), []int64{accepted.ID})
	return accepted.ID, f.record(first, accepted.ID, e, passive)
}

func editElsewhere(f *fixture) {
	f.message(threadKey(1), said("C1/1", "one"), passive)
	_, result := f.handed(edited("C1/1", "two", "2"))
	same(f, "result", result.Disposition, event.Updated)
	again, result := f.handed(edited("C1/1", "two", "2"))
	same(f, "sent again", result.Result, *event.Ignore(event.ReasonNoChange))
	f.change(threadKey(1), deleted("C1/1"), nil)
	same(f, "raw bytes after a delete", len(f.body(again)), 0)
}

func deletePromises() []promise {
	return []promise{
		{"a delete blanks every row with words of the message", deleteBlanks},
		{"a bulk delete is applied to every known message", bulkDelete},
		{"a second delete changes nothing", deleteTwice},
		{"a deleted message triggers nothing", deleteBeforeRun},
		{"a delete during the run reports the run", deleteDuringRun},
		{"a delete of our post blanks the reply", deleteOfReply},
		{"a delete of one post of several leaves the reply", deleteOfPart},
		{"a delete blanks the quotations of its thread", deleteQuoted},
		{"a bulk delete of messages of several threads moves from one thread to the next", deleteElsewhere},
	}
}

func deleteBlanks(f *fixture) {
	m := said("C1/1", "secret")
	m.Quoted = &event.Quote{Content: "secret"}
	m.Attachments = []event.Attachment{{ID: "F1", Name: "secret"}}
	var ids []int64
	tell := func(kind event.Kind, e event.Event) {
		accepted := f.accept(f.envelope(kind, threadKey(1), "C1/1"))
		ids = append(ids, accepted.ID)
		f.record(accepted.Thread, accepted.ID, e, passive)
	}
	tell(event.KindMessage, event.Event{Kind: event.KindMessage, Message: m})
	tell(event.KindMessage, event.Event{Kind: event.KindMessage, Message: m})
	tell(event.KindEdit, edited("C1/1", "secret two", "2"))
	tell(event.KindEdit, edited("C1/1", "secret two", "2"))
	tell(event.KindReaction, thumbsUp("C1/1"))
	tell(event.KindDelete, deleted("C1/1"))
	for i, id := range ids {
		if len(f.body(id)) > 0 {
			f.Fatalf("envelope %d: raw bytes are stored", i)
		}
	}
	got := f.list(threadKey(1))[0]
	same(f, "content", got.Content, "")
	same(f, "quotes", got.Quotes, messages.Quotes{})
	same(f, "reactions", len(got.Reactions), 0)
	same(f, "files", f.count("attachments"), 0)
	same(f, "deleted", got.DeletedAt, f.clock.Now())
	same(f, "sender", got.SenderID, "slack:U1")
}

func bulkDelete(f *fixture) {
	for _, id := range []string{"C1/1", "C1/2", "C1/3"} {
		f.message(threadKey(1), said(id, "hi"), passive)
	}
	same(f, "result", f.change(threadKey(1), deleted("C1/1", "C1/none", "C1/3"), nil).Disposition, event.Updated)
	same(f, "thread", f.lines(threadKey(1)), []string{"1 -", "2 hi", "3 -"})
	same(f, "some known messages again", f.change(threadKey(1), deleted("C1/1", "C1/2"), nil).Disposition, event.Updated)
	same(f, "thread", f.lines(threadKey(1)), []string{"1 -", "2 -", "3 -"})
	same(f, "only unknown messages", f.change(threadKey(1), deleted("C1/8", "C1/9"), nil).Waits, true)
}

func deleteTwice(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), passive)
	f.change(threadKey(1), deleted("C1/1"), nil)
	first := f.list(threadKey(1))[0].DeletedAt
	f.clock.advance(1e9)
	same(f, "result", f.change(threadKey(1), deleted("C1/1"), nil).Result, *event.Ignore(event.ReasonDeleted))
	same(f, "deleted", f.list(threadKey(1))[0].DeletedAt, first)
}

func deleteBeforeRun(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	same(f, "withdrawn", f.change(threadKey(1), deleted("C1/1"), nil).Withdrawn, "")
	if run := f.mayBegin(threadKey(1), false); run != nil {
		f.Fatalf("a run began for %q", contents(run.Messages))
	}
	same(f, "turns", f.due(turns), nil)
	f.message(threadKey(1), said("C1/2", "ho"), triggers)
	same(f, "asked", contents(f.begin(threadKey(1)).Messages), []string{"ho"})
}

func deleteDuringRun(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	run := f.begin(threadKey(1))
	same(f, "withdrawn", f.change(threadKey(1), deleted("C1/1"), nil).Withdrawn, run.ID)
}

func deleteOfReply(f *fixture) {
	f.exchange(threadKey(2), "C1/0", "hey", "kept", "kept")
	f.deliver(threadKey(2), "C1/7")
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	run := f.begin(threadKey(1))
	f.must(f.Runs.MarkSigned(f.ctx, f.claim(run.Thread), run, sign, time.Second))
	d, _ := f.preview(run, "sec")
	err := f.Outbox.GiveUp(f.ctx, d, outbox.Failed, "it had not arrived")
	f.must(err)
	f.commit(run, answer("secret", "secret"))
	f.deliver(threadKey(1), "C1/9")
	same(f, "result", f.change(threadKey(1), deleted("C1/9"), nil).Disposition, event.Updated)
	same(f, "thread", f.lines(threadKey(1)), []string{"1 hi", "2 -"})
	same(f, "another thread", f.lines(threadKey(2)), []string{"1 hey", "2 kept"})
	same(f, "payloads kept", f.count("deliveries WHERE payload <> '' AND thread = "+fmt.Sprint(run.Thread)), 1)
	same(f, "of the sign of work, which is still to be removed", f.delivery(threadKey(1)).Post.Text, sign.Text)
}

func deleteOfPart(f *fixture) {
	f.exchange(threadKey(1), "C1/1", "hi", "one two", "one", "two")
	f.deliver(threadKey(1), "C1/8")
	f.deliver(threadKey(1), "C1/9")
	same(f, "result", f.change(threadKey(1), deleted("C1/9"), nil).Result, *event.Ignore(event.ReasonOwnMessage))
	same(f, "thread", f.lines(threadKey(1)), []string{"1 hi", "2 one two"})
}

func deleteQuoted(f *fixture) {
	f.exchange(threadKey(1), "C1/1", "secret", "our secret", "our secret")
	f.deliver(threadKey(1), "C1/9")
	for i, quoted := range []string{"C1/1", "C1/9", "C1/never-seen", "C1/other"} {
		m := said(fmt.Sprint("C1/quotes", i), "look")
		m.Quoted, m.Forwarded = &event.Quote{ExternalID: quoted, Content: "secret"}, []event.Quote{{Content: "kept"}}
		f.message(threadKey(1), m, passive)
	}
	f.change("", inWords("C1/1"), passive)
	f.change("", deleted("C1/1"), nil)
	f.change("", deleted("C1/9"), nil)
	same(f, "the delete of a message that was never seen", f.change(threadKey(1), deleted("C1/never-seen"), nil).Waits, true)
	var left []string
	for _, m := range f.list(threadKey(1))[2:] {
		if m.Quotes.Quoted != nil {
			left = append(left, m.Quotes.Quoted.ExternalID)
		}
		same(f, "forwarded messages", len(m.Quotes.Forwarded), map[bool]int{true: 1}[m.Content == "look"])
	}
	same(f, "quoted still", left, []string{"C1/other"})
}

func deleteElsewhere(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	f.message(threadKey(2), said("C1/2", "ho"), passive)
	run := f.begin(threadKey(1))
	envelope, result := f.handed(deleted("C1/2", "C1/1"))
	same(f, "result", result.Disposition, event.Updated)
	same(f, "withdrawn", result.Withdrawn, run.ID)
	same(f, "the first thread", f.lines(threadKey(1)), []string{"1 -"})
	same(f, "the second thread", f.lines(threadKey(2)), []string{"1 -"})
	same(f, "raw bytes", len(f.body(envelope)), 0)
}

func reactionPromises() []promise {
	return []promise{
		{"a reaction is added to its message once, and removed", reactions},
		{"a reaction to our post belongs to the reply", reactionToReply},
		{"a reaction to a post of ours that is no reply is ignored", reactionToNotice},
		{"a reaction to a deleted message is ignored", reactionToDeleted},
		{"a reaction to another thread's message moves to that thread", reactionElsewhere},
		{"a reaction with a message is stored once, and quotes its target", reactionSpoken},
		{"a reaction is applied even if its message is not stored", reactionUnspoken},
		{"a quotation finds the newest message or post of its thread", quoted},
	}
}

func quoted(f *fixture) {
	start := time.UnixMilli(0)
	find := func(thread event.ThreadKey, q event.Quotation, since time.Time) string {
		id, err := f.Outbox.Quoted(f.ctx, f.thread(thread), q, since)
		f.must(err)
		return id
	}
	text := func(s string) string { return find(threadKey(1), event.Quotation{Text: s}, start) }
	media := func(s string) string { return find(threadKey(1), event.Quotation{Media: s}, start) }
	photo := said("C1/1", "  rain tomorrow")
	photo.Attachments = []event.Attachment{{ID: "f", Name: "a.heic", MimeType: "image/heic"}}
	f.message(threadKey(1), photo, passive)
	f.message(threadKey(1), said("C1/2", "rain tomorrow, so stay"), passive)
	f.message(threadKey(2), said("C1/3", "rain tomorrow"), passive)
	f.message(threadKey(1), said("C1/4", "and next week?"), triggers)
	reply := answer("A", "The sun shines.", "")
	reply.Posts[1].File = &outbox.File{Name: "a.mp4", MimeType: "video/mp4", Text: "x"}
	f.commit(f.begin(threadKey(1)), reply)
	same(f, "a post that is not sent", text("The sun"), "")
	f.deliver(threadKey(1), "C1/5")
	f.deliver(threadKey(1), "C1/6")
	same(f, "all of a text", text("rain tomorrow"), "C1/1")
	same(f, "the beginning of a text", text("rain tom"), "C1/2")
	same(f, "a post", text("The sun"), "C1/5")
	same(f, "other words", text("tomorrow"), "")
	same(f, "a picture", media("image/"), "C1/1")
	same(f, "a film", media("video/"), "C1/6")
	same(f, "any file", media(""), "C1/6")
	same(f, "no file", media("audio/"), "")
	same(f, "another thread", find(threadKey(2), event.Quotation{Text: "rain"}, start), "C1/3")
	same(f, "an old message", find(threadKey(1), event.Quotation{Text: "rain"}, time.Now().Add(time.Hour)), "")
	f.change(threadKey(1), deleted("C1/2"), nil)
	same(f, "after a delete", text("rain tom"), "C1/1")
}

func reactions(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), passive)
	noChange := *event.Ignore(event.ReasonNoChange)
	same(f, "put", f.change(threadKey(1), thumbsUp("C1/1"), nil).Disposition, event.Updated)
	same(f, "put again", f.change(threadKey(1), thumbsUp("C1/1"), nil).Result, noChange)
	other := thumbsUp("C1/1")
	other.Reaction.SenderID = "slack:U3"
	same(f, "another person's", f.change(threadKey(1), other, nil).Disposition, event.Updated)
	same(f, "reactions", len(f.list(threadKey(1))[0].Reactions), 2)
	gone := thumbsUp("C1/1")
	gone.Reaction.Removed = true
	same(f, "taken away", f.change(threadKey(1), gone, nil).Disposition, event.Updated)
	same(f, "removed again", f.change(threadKey(1), gone, nil).Result, noChange)
	same(f, "reactions", f.list(threadKey(1))[0].Reactions, []event.Reaction{*other.Reaction})
	all := event.Event{Kind: event.KindReaction, Targets: []string{"C1/1"}, Reaction: &event.Reaction{Removed: true, All: true}}
	same(f, "all removed", f.change(threadKey(1), all, nil).Disposition, event.Updated)
	same(f, "reactions", len(f.list(threadKey(1))[0].Reactions), 0)
}

func reactionToReply(f *fixture) {
	f.exchange(threadKey(1), "C1/1", "hi", "one two", "one", "two")
	f.deliver(threadKey(1), "C1/8")
	f.deliver(threadKey(1), "C1/9")
	f.change(threadKey(1), thumbsUp("C1/9"), nil)
	same(f, "reactions", len(f.list(threadKey(1))[1].Reactions), 1)
}

func reactionToNotice(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	f.fail(f.begin(threadKey(1)), "Sorry.")
	f.deliver(threadKey(1), "C1/9")
	same(f, "result", f.change("", thumbsUp("C1/9"), nil).Result, *event.Ignore(event.ReasonUnknownMessage))
}

func reactionToDeleted(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), passive)
	f.change(threadKey(1), deleted("C1/1"), nil)
	same(f, "result", f.change(threadKey(1), thumbsUp("C1/1"), nil).Result, *event.Ignore(event.ReasonDeleted))
}

// inWords returns a reaction with its message.
func inWords(target string) event.Event {
	e := thumbsUp(target)
	e.Message = said("reaction/"+target, ":+1:")
	e.Message.Metadata.SenderID, e.Message.ReplyTo = "slack:U2", target
	return e
}

func reactionSpoken(f *fixture) {
	f.exchange(threadKey(1), "C1/1", "hi", "Hello.", "Hello.")
	f.deliver(threadKey(1), "C1/9")
	result := f.change("", inWords("C1/9"), triggers)
	same(f, "result", result.Result, event.Result{Disposition: event.Stored, Reason: event.ReasonMention})
	same(f, "reaction", result.Reaction.Emoji, "+1")
	reply := f.list(threadKey(1))[1]
	same(f, "on the reply", len(reply.Reactions), 1)
	same(f, "it quotes", *result.Message.Quotes.Quoted, event.Quote{ExternalID: reply.ExternalID, SenderID: "agent:helper", Content: "Hello.", Own: true})
	same(f, "told again", f.change("", inWords("C1/9"), triggers).Result, *event.Ignore(event.ReasonNoChange))
	run := f.begin(threadKey(1))
	same(f, "asked", contents(run.Messages), []string{":+1:"})
	f.commit(run, answer("You're welcome."))
	gone := thumbsUp("C1/9")
	gone.Reaction.Removed = true
	f.change("", gone, triggers)
	same(f, "added again by the same event", f.change("", inWords("C1/9"), triggers).Result, event.Result{Disposition: event.Updated})
	same(f, "turns", f.due(turns), nil)
	same(f, "thread", f.lines(threadKey(1)), []string{"1 hi", "2 Hello.", "3 :+1:", "4 You're welcome."})
}

func reactionUnspoken(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), passive)
	for i, decide := range []policy{refused, noted} {
		e := inWords("C1/1")
		e.Reaction.SenderID = fmt.Sprint("slack:U", i)
		same(f, "result", f.change("", e, decide).Result, event.Result{Disposition: event.Updated})
		same(f, "reactions", len(f.list(threadKey(1))[0].Reactions), i+1)
	}
	same(f, "thread", f.lines(threadKey(1)), []string{"1 hi"})
}

func reactionElsewhere(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), passive)
	_, result := f.handed(thumbsUp("C1/1"))
	same(f, "result", result.Disposition, event.Updated)
	same(f, "reactions", len(f.list(threadKey(1))[0].Reactions), 1)
}
