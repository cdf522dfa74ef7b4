package journaltest

import (
	"fmt"
	"slices"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/files"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/record"
	"parley/ingest/journal/threads"
)

func messagePromises() []promise {
	return []promise{
		{"thread_seq has no gap and follows the order of the accepts", seqInOrder},
		{"content and metadata are returned exactly", exactContent},
		{"a message of ours is recognised by id, by platform id and by key", ownMessages},
		{"a message that policy refuses is not stored", refusedMessage},
		{"a noted message has its id and no content", notedMessage},
		{"a known message is a duplicate", duplicateMessage},
		{"a known client id is a duplicate under any external id", duplicateClient},
		{"a second payload that triggers a run raises a passive message once", secondPayloadRaises},
		{"a second payload of a message in a run changes nothing", secondPayloadAfterRun},
		{"a second payload that triggers a run stores a noted message, and is no edit", secondPayloadOfNoted},
		{"two payloads of a message add the files of both, in both orders, once each", secondPayloadFiles},
		{"a second payload in another thread moves to the message's thread", straySecondPayload},
		{"a payload of a deleted message does not restore it", duplicateOfDeleted},
		{"the policy knows the mode of the thread", threadModes},
	}
}

func seqInOrder(f *fixture) {
	f.message(threadKey(1), said("C1/1", "a"), passive)
	f.message(threadKey(2), said("C1/2", "elsewhere"), passive)
	f.message(threadKey(1), said("C1/1", "a"), passive)  // a duplicate gets no number
	f.message(threadKey(1), said("C1/3", "b"), refused)  // nor does a message that is not stored
	f.message(threadKey(1), said("C1/4", "c"), noted)    // nor a noted one
	f.change(threadKey(1), thumbsUp("C1/1"), nil)        // nor an event without a message
	f.message(threadKey(1), said("C1/5", "d"), triggers) // a run does not delay intake
	run := f.begin(threadKey(1))
	f.message(threadKey(1), said("C1/6", "e"), passive)
	f.commit(run, answer("f"))
	f.message(threadKey(1), said("C1/7", "g"), passive)
	same(f, "thread", f.lines(threadKey(1)), []string{"1 a", "2 d", "3 e", "4 f", "5 g"})
}

func exactContent(f *fixture) {
	raw := []byte(`{"zz":1.0,"source":"slack","sender_id":"slack:U1", "sender_display_name":"O\u0020<i>","sender_type":"human","x":{"b":[ 1 ]}}`)
	m := said("C1/1", " \r\n\t`x` 'quoted' \"é\" \u2028 😀 [Bob]: ")
	m.Quoted = &event.Quote{ExternalID: "C1/0", Name: "Ash", Content: "quoted", Names: event.Names{"<@1>": "Ben"}}
	m.Names = event.Names{"<@2>": "Sam <sam>"}
	m.Forwarded = []event.Quote{{Content: "forwarded", Files: 2, FileNames: []string{"a b.png"}}}
	m.Attachments = []event.Attachment{{ID: "F1", Name: "a b.png", MimeType: "image/png", Size: 1 << 40}, {ID: "F2", Type: event.TypeVoice, DurationMS: 3200}}
	m.SentAt = f.clock.Now().Add(-time.Minute)
	keep := func(*event.Message, record.Look) record.Decision {
		return record.Decision{Trigger: messages.TriggerPassive, Metadata: raw}
	}
	f.message(threadKey(1), m, keep)
	got := f.list(threadKey(1))[0]
	same(f, "content", got.Content, m.Content)
	same(f, "metadata", string(got.Metadata), string(raw))
	same(f, "quotes", got.Quotes, messages.Quotes{Quoted: m.Quoted, Forwarded: m.Forwarded, Names: m.Names})
	same(f, "file", got.Attachments[0].Attachment, m.Attachments[0])
	same(f, "voice note", got.Attachments[1].Attachment, m.Attachments[1])
	same(f, "the platform's time", got.SentAt, m.SentAt)
	same(f, "our time", got.CreatedAt, f.clock.Now())
	same(f, "author", got.Author, messages.ByHuman)
}

func ownMessages(f *fixture) {
	f.exchange(threadKey(1), "C1/1", "hi", "Hello.", "Hello.")
	d := f.deliver(threadKey(1), "C1/9")

	shown := said("C1/8", "Hello.")
	shown.Own = true
	byID := said("C1/9", "Hello.")
	byID.Metadata.SenderType = event.Bot
	byKey := said("C1/10", "Hello.")
	byKey.OwnKey = d.Key
	for _, m := range []*event.Message{shown, byID, byKey} {
		same(f, m.ExternalID, f.message(threadKey(1), m, triggers).Result, *event.Ignore(event.ReasonOwnMessage))
	}
	same(f, "an edit of our message", f.change(threadKey(1), edited("C1/9", "Hello!", "2"), triggers).Result, *event.Ignore(event.ReasonOwnMessage))

	foreign := said("C1/11", "I am another bot")
	foreign.Metadata.SenderType = event.Bot
	result := f.message(threadKey(1), foreign, passive)
	same(f, "another bot's", result.Disposition, event.Stored)
	same(f, "author", result.Message.Author, messages.ByBot)
}

func refusedMessage(f *fixture) {
	result := f.message(threadKey(1), said("C1/1", "hi"), refused)
	same(f, "result", result.Result, *event.Ignore(event.ReasonUserRefused))
	same(f, "messages", f.count("messages"), 0)
	same(f, "turns", f.due(turns), nil)
}

func notedMessage(f *fixture) {
	m := said("C1/1", "secret")
	m.Attachments = []event.Attachment{{ID: "F1"}}
	m.Quoted = &event.Quote{Content: "secret"}
	accepted := f.accept(f.envelope(event.KindMessage, threadKey(1), "C1/1"))
	result := f.record(accepted.Thread, accepted.ID, event.Event{Kind: event.KindMessage, Message: m}, noted)
	same(f, "result", result.Result, *event.Ignore(event.ReasonNotAddressed))
	settled, err := f.Envelopes.Envelope(f.ctx, accepted.ID)
	f.must(err)
	same(f, "freshness", settled.Message.Freshness, nil)
	same(f, "content", result.Message.Content, "")
	same(f, "quotes", result.Message.Quotes, messages.Quotes{})
	same(f, "files", f.count("attachments"), 0)
	same(f, "thread", f.lines(threadKey(1)), []string{})
	same(f, "again", f.message(threadKey(1), m, noted).Disposition, event.Duplicate)
	same(f, "words kept", f.count("messages WHERE content <> '' OR quotes <> ''"), 0)
}

func duplicateMessage(f *fixture) {
	first := f.message(threadKey(1), said("C1/1", "hi"), triggers)
	second := f.message(threadKey(1), said("C1/1", "hi"), triggers)
	same(f, "result", second.Result, event.Result{Disposition: event.Duplicate})
	same(f, "message", second.Message.Row, first.Message.Row)
	same(f, "thread", second.Thread, threadKey(1))
	f.commit(f.begin(threadKey(1)), answer("Hello."))
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	same(f, "turns", f.due(turns), nil)
}

func duplicateClient(f *fixture) {
	first := said("0190-1", "hi")
	first.ClientMessageID = "mine"
	f.message(threadKey(1), first, triggers)
	second := said("0190-2", "hi")
	second.ClientMessageID = "mine"
	same(f, "result", f.message(threadKey(1), second, triggers).Disposition, event.Duplicate)
	third := said("0190-3", "hi")
	third.ClientMessageID = "mine"
	third.Metadata.SenderID = "slack:U2"
	same(f, "another sender's", f.message(threadKey(1), third, triggers).Disposition, event.Stored)
	for i, bots := range []struct { // a bot's message is looked up before it is stored
		sender, id string
		want       event.Disposition
	}{{"slack:U1", "mine", event.Duplicate}, {"slack:U1", "other", event.Stored}, {"slack:U3", "mine", event.Stored}} {
		m := said(fmt.Sprint("0190-bot-", i), "hi")
		m.ClientMessageID, m.Metadata.SenderID, m.Metadata.SenderType = bots.id, bots.sender, event.Bot
		same(f, bots.id+" of "+bots.sender, f.message(threadKey(1), m, triggers).Disposition, bots.want)
	}
}

func secondPayloadRaises(f *fixture) {
	f.message(threadKey(1), said("C1/1", "<@B> hi"), passive)
	same(f, "turns", f.due(turns), nil)
	result := f.message(threadKey(1), said("C1/1", "<@B> hi"), triggers)
	same(f, "result", result.Result, event.Result{Disposition: event.Updated, Reason: event.ReasonMention})
	same(f, "trigger", result.Trigger, messages.TriggerRun)
	run := f.begin(threadKey(1))
	same(f, "asked", contents(run.Messages), []string{"<@B> hi"})
	same(f, "once more", f.message(threadKey(1), said("C1/1", "<@B> hi"), triggers).Disposition, event.Duplicate)
	f.commit(run, answer("Hello."))
	same(f, "after the reply", f.message(threadKey(1), said("C1/1", "<@B> hi"), triggers).Disposition, event.Duplicate)
	same(f, "turns", f.due(turns), nil)
}

func secondPayloadOfNoted(f *fixture) {
	f.message(threadKey(1), said("C1/1", "<@B> hi"), noted)
	result := f.message(threadKey(1), said("C1/1", "<@B> hi"), triggers)
	same(f, "result", result.Result, event.Result{Disposition: event.Updated, Reason: event.ReasonMention})
	same(f, "asked", contents(f.begin(threadKey(1)).Messages), []string{"<@B> hi"})
	same(f, "edited", f.list(threadKey(1))[0].EditedAt.IsZero(), true)
}

func secondPayloadAfterRun(f *fixture) {
	f.message(threadKey(1), said("C1/1", "<@B> hi"), triggers)
	result := f.message(threadKey(1), said("C1/1", "<@B> hi"), passive)
	same(f, "result", result.Result, event.Result{Disposition: event.Duplicate})
	same(f, "trigger", result.Message.Trigger, messages.TriggerRun)
	same(f, "asked", contents(f.begin(threadKey(1)).Messages), []string{"<@B> hi"})
}

func secondPayloadFiles(f *fixture) {
	bare, full := said("C1/1", "see"), said("C1/1", "see")
	full.Attachments = []event.Attachment{{ID: "F1", Name: "a"}, {ID: "F2", Name: "b"}}
	more := said("C1/1", "see")
	more.Attachments = []event.Attachment{{ID: "F2", Name: "b"}, {ID: "F3", Name: "c"}}
	for i, order := range [][]*event.Message{{bare, full, more}, {full, bare, more}, {more, full, bare}} {
		key := threadKey(i)
		for k, m := range order {
			second := *m
			second.ExternalID += string(key)
			want := event.Duplicate
			if k == 0 {
				want = event.Stored
			}
			same(f, "result", f.message(key, &second, passive).Disposition, want)
		}
		names := each(f.list(key)[0].Attachments, func(a files.Attachment) string { return a.Name })
		slices.Sort(names)
		same(f, "files", names, []string{"a", "b", "c"})
	}
}

func straySecondPayload(f *fixture) {
	f.message(threadKey(1), said("C1/1", "@bot hi"), passive)
	accepted := f.accept(f.envelope(event.KindMessage, threadKey(2), "C1/1"))
	second := event.Event{Kind: event.KindMessage, Message: said("C1/1", "@bot hi")}
	same(f, "waits", f.record(accepted.Thread, accepted.ID, second, triggers).Waits, true)
	thread := f.thread(threadKey(1))
	same(f, "due", f.due(intake), []int64{thread})
	same(f, "result", f.record(thread, accepted.ID, second, triggers).Disposition, event.Updated)
	same(f, "turns", f.due(turns), []int64{thread})
	same(f, "asked", contents(f.begin(threadKey(1)).Messages), []string{"@bot hi"})
}

func duplicateOfDeleted(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), passive)
	f.change(threadKey(1), deleted("C1/1"), nil)
	accepted := f.accept(f.envelope(event.KindMessage, threadKey(1), "C1/1"))
	result := f.record(accepted.Thread, accepted.ID, event.Event{Kind: event.KindMessage, Message: said("C1/1", "hi")}, triggers)
	same(f, "result", result.Result, *event.Ignore(event.ReasonDeleted))
	same(f, "raw bytes", len(f.body(accepted.ID)), 0)
	same(f, "thread", f.lines(threadKey(1)), []string{"1 -"})
	same(f, "turns", f.due(turns), nil)
}

func threadModes(f *fixture) {
	invoked := func(m *event.Message, look record.Look) record.Decision {
		if look.InvocationOnly() {
			return mentions(m, look)
		}
		return triggers(m, look)
	}
	trigger := func(thread int, id, content string) messages.Trigger {
		return f.message(threadKey(thread), said(id, content), invoked).Trigger
	}
	f.make(1, olivia, threads.ModeInvocationOnly)
	same(f, "without a mention", trigger(1, "C1/1", "hi"), messages.TriggerPassive)
	same(f, "with a mention", trigger(1, "C1/2", "@bot hi"), messages.TriggerRun)
	same(f, "in an open thread", trigger(2, "C1/3", "hi"), messages.TriggerRun)
}
