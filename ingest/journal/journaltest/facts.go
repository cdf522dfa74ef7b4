package journaltest

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"parley/ingest/event"
	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/files"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/record"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
)

func factPromises() []promise {
	return []promise{
		{"our identity is stored by workspace", selfRemembered},
		{"a channel's type is stored from payloads", channelRemembered},
		{"a thread's parent is stored from the first payload that names it", parentRemembered},
		{"a thread's messages are listed in order, with tombstones", listed},
		{"the state of a file's copy is stored", attachments},
		{"a thread is answered from its first reply on", answeredThreads},
		{"a web thread keeps its own id, which no other thread may have, and any other id derives from the thread's key with a secret", threadIDs},
		{"the backlog counts each pending envelope once", backlog},
		{"a store is quiet if no envelope is pending, no turn is due and no run is unfinished", quiet},
		{"a probe succeeds while another transaction is stuck, and leaves no row", probe},
	}
}

func selfRemembered(f *fixture) {
	unknown, err := f.Threads.Self(f.ctx, workspace)
	f.must(err)
	same(f, "at first", unknown, event.Self{})
	first := event.Self{TeamID: "T1", UserID: "U0", BotID: "B0", AppID: "A1", Address: "+1555"}
	f.must(f.Envelopes.SetSelf(f.ctx, workspace, event.Self{UserID: "U0"}))
	f.must(f.Envelopes.SetSelf(f.ctx, workspace, first))
	f.must(f.Envelopes.SetSelf(f.ctx, "other", event.Self{UserID: "U9"}))
	self, err := f.successor("second").Threads.Self(f.ctx, workspace)
	f.must(err)
	same(f, "identity", self, first)
}

func channelRemembered(f *fixture) {
	kind := func(workspace, channel string) event.ChannelType {
		f.Helper()
		kind, err := f.Threads.ChannelType(f.ctx, workspace, channel)
		f.must(err)
		return kind
	}
	same(f, "at first", kind(workspace, channel), event.ChannelUnknown)
	for _, want := range []event.ChannelType{event.ChannelRoom, event.ChannelGroup} {
		a := f.envelope(event.KindMessage, threadKey(1), "C1/1")
		a.Keys.Channel.Type, a.LearnChannel = want, true
		f.accept(a)
		same(f, "type", kind(workspace, channel), want)
	}
	same(f, "in another workspace", kind("other", channel), event.ChannelUnknown)
	same(f, "of another channel", kind(workspace, "C2"), event.ChannelUnknown)
}

func parentRemembered(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), passive)
	a := f.envelope(event.KindMessage, threadKey(1), "C1/2")
	a.Keys.Channel.Parent = "C0"
	accepted := f.accept(a)
	e := entry(accepted.ID, event.Event{Kind: event.KindMessage, Message: said("C1/2", "hello")}, triggers)
	e.Begin = true
	result, err := f.Recorder.Record(f.ctx, f.claim(accepted.Thread), e)
	f.must(err)
	same(f, "of a run that begins with its message", result.Begun.Parent, "C0")
	f.message(threadKey(1), said("C1/3", "hello?"), triggers) // its payload names no parent
	next := f.successor("second")
	run := next.begin(threadKey(1))
	same(f, "of a resumed run", [2]string{run.Channel, run.Parent}, [2]string{channel, "C0"})
	reply := answer("re", "re")
	reply.Send = &outbox.Send{Timeout: time.Second}
	begun := next.commit(run, reply).Begun
	same(f, "of a delivery that begins with its reply", [2]string{begun.Channel, begun.Parent}, [2]string{channel, "C0"})
	d := next.delivery(threadKey(1))
	same(f, "of a delivery", [2]string{d.Channel, d.Parent}, [2]string{channel, "C0"})
}

func listed(f *fixture) {
	_, err := f.Messages.ThreadMessages(f.ctx, workspace, f.threadID(threadKey(1)), messages.Page{Limit: 10})
	f.fails("a missing thread", err, storage.ErrNotFound)
	for i := range 5 {
		f.message(threadKey(1), said(fmt.Sprint("C1/", i), fmt.Sprint(i)), passive)
	}
	f.change(threadKey(1), deleted("C1/2"), nil)
	same(f, "all", f.lines(threadKey(1)), []string{"1 0", "2 1", "3 -", "4 3", "5 4"})
	page, err := f.Messages.ThreadMessages(f.ctx, workspace, f.threadID(threadKey(1)), messages.Page{After: 1, Limit: 3})
	f.must(err)
	same(f, "a page", each(page, func(m messages.Listed) int64 { return m.Seq }), []int64{2, 3, 4})
	same(f, "freshness of a question is absent", page[0].Freshness == nil, true)
}

func attachments(f *fixture) {
	m := said("C1/1", "see")
	m.Attachments = []event.Attachment{{ID: "F1", Name: "a.png", MimeType: "image/png", Size: 3}}
	f.message(threadKey(1), m, passive)
	file := f.list(threadKey(1))[0].Attachments[0]
	same(f, "state", file.State, files.Pending)
	file.State, file.Bucket, file.Path, file.Size, file.MimeType = files.Stored, "bucket", "ab/cd", 4, "image/jpeg"
	f.must(f.Files.SetAttachment(f.ctx, file, "abcd"))
	got := f.list(threadKey(1))[0].Attachments[0]
	want := file
	want.State, want.Bucket, want.Path, want.Size, want.MimeType = files.Stored, "bucket", "ab/cd", 4, "image/jpeg"
	same(f, "copy", got, want)
}

func answeredThreads(f *fixture) {
	n := 0
	answered := func(thread event.ThreadKey) (yes bool) {
		n++
		f.message(thread, said(fmt.Sprint("C1/look-", n), "?"), func(m *event.Message, look record.Look) record.Decision {
			yes = look.Answered()
			return passive(m, look)
		})
		return yes
	}
	same(f, "a new thread", answered(threadKey(1)), false)
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	run := f.begin(threadKey(1))
	same(f, "during the run", answered(threadKey(1)), false)
	f.fail(run, "Sorry.")
	same(f, "after a failed run", answered(threadKey(1)), false)
	f.exchange(threadKey(1), "C1/2", "hi again", "Hello.")
	same(f, "after the answer", answered(threadKey(1)), true)
	same(f, "another thread", answered(threadKey(2)), false)
}

func threadIDs(f *fixture) {
	const own = "0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b"
	same(f, "web", f.threadID("web:acme:"+own), own)
	slack := f.threadID("slack:acme:C1:1")
	same(f, "slack", slack, f.threadID("slack:acme:C1:1"))
	same(f, "is none that a client may name", threads.IsDerived(slack), true)
	same(f, "another", slack == f.threadID("slack:acme:C1:2"), false)
	same(f, "without the secret", slack == uuid.NewSHA1(uuid.NameSpaceURL, []byte("parley:slack:acme:C1:1")).String(), false)
	_, _, err := f.Threads.MakeThread(f.ctx, event.Web, own, threads.Thread{Workspace: "acme", Key: "web:acme:" + own, MadeBy: "user:a"})
	f.must(err)
	_, _, err = f.Threads.MakeThread(f.ctx, event.Web, own, threads.Thread{Workspace: "other", Key: "web:other:" + own, MadeBy: "user:b"})
	f.fails("another workspace makes the thread", err, storage.ErrNotFound)
	request := f.envelope(event.KindMessage, event.ThreadKey("web:other:"+own), "C1/9")
	request.Envelope.Workspace = "other"
	_, err = f.Envelopes.Accept(f.ctx, request)
	f.fails("another workspace's message names the thread", err, storage.ErrNotFound)
	f.message(threadKey(1), said("C1/1", "hi"), triggers)
	same(f, "of a run", f.begin(threadKey(1)).ThreadID, f.threadID(threadKey(1)))
}

func backlog(f *fixture) {
	f.message(threadKey(1), said("C1/1", "hi"), passive)
	f.accept(f.envelope(event.KindMessage, threadKey(1), "C1/2"))
	f.accept(f.envelope(event.KindReaction, "", "C1/9")) // waits for its message
	got, err := f.Envelopes.Backlog(f.ctx)
	f.must(err)
	same(f, "backlog", got, envelopes.Backlog{Pending: 2})
}

func quiet(f *fixture) {
	is := func(turnsBy time.Duration) bool {
		f.Helper()
		is, err := f.Runs.Quiet(f.ctx, f.clock.Now().Add(turnsBy))
		f.must(err)
		return is
	}
	same(f, "at first", is(time.Hour), true)
	accepted := f.accept(f.envelope(event.KindMessage, threadKey(1), "C1/1"))
	same(f, "with a pending envelope", is(0), false)
	e := entry(accepted.ID, event.Event{Kind: event.KindMessage, Message: said("C1/1", "hi")}, triggers)
	e.Coalesce, e.CoalesceMax = time.Minute, time.Minute
	_, err := f.Recorder.Record(f.ctx, f.claim(accepted.Thread), e)
	f.must(err)
	same(f, "before the turn is due", [2]bool{is(time.Minute - time.Millisecond), is(time.Minute)}, [2]bool{true, false})
	f.clock.advance(time.Minute)
	f.leaves(f.begin(threadKey(1)), runs.Unanswered{At: f.clock.Now().Add(time.Hour), Failed: true})
	same(f, "before the next attempt of a run", is(0), false)
	f.clock.advance(time.Hour)
	f.commit(f.begin(threadKey(1)), answer("Hello."))
	same(f, "in the end", is(time.Hour), true)
}

func probe(f *fixture) {
	f.must(f.Probe(f.ctx))
	waited := f.beside(func(tx storage.Tx) error {
		_, err := tx.Exec(`UPDATE retention_progress SET position = position`)
		return err
	}, func(storage.Tx) error { return nil }, func() error { return f.Probe(f.ctx) })
	same(f, "waits", waited && f.onShared(), false)
	same(f, "rows left", f.count("retention_progress"), 0)
}
