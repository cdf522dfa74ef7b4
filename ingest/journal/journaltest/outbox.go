package journaltest

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/outbox"
)

func outboxPromises() []promise {
	return []promise{
		{"a post is not older than its question, by the platform's clock", notOlder},
		{"a thread's deliveries leave in order", deliveryOrder},
		{"an unsent delivery is sent again under its key, not before its time", resent},
		{"an unclear delivery waits for its read-back", readBack},
		{"after a failed part, the rest of the reply is not sent", restFails},
		{"a held delivery with an unknown outcome lets the next one leave", unknownPasses},
		{"a delivery that has ended is not sent again", notSentAgain},
		{"a node that lost a delivery cannot change it", deliveryLost},
		{"a post that arrived is recorded without a claim", arrivalIsAFact},
		{"a reply committed during a send in its thread is due", committedMeanwhile},
		{"a post that is being sent is known by its text or its file", beingSent},
	}
}

func deliveryOrder(f *fixture) {
	f.exchange(threadKey(1), "C1/1", "a", "A", "A1", "A2")
	f.exchange(threadKey(1), "C1/2", "b", "B", "B1")
	for i, want := range []string{"A1", "A2", "B1"} {
		same(f, "due", f.due(deliveries), []int64{f.thread(threadKey(1))})
		d := f.delivery(threadKey(1))
		same(f, "post", d.Post.Text, want)
		f.sending(d)
		same(f, "during the send", f.delivery(threadKey(1)).ID, d.ID)
		more, err := f.Outbox.Sent(f.ctx, d, fmt.Sprint("C1/", 10+i))
		f.must(err)
		same(f, "more", more, want != "B1")
	}
	same(f, "due", f.due(deliveries), nil)
}

func resent(f *fixture) {
	f.exchange(threadKey(1), "C1/1", "a", "A", "A1", "A2")
	d := f.delivery(threadKey(1))
	f.sending(d)
	at := f.clock.Now().Add(time.Second)
	f.must(f.Outbox.Resend(f.ctx, d, at, "the connection was refused"))
	same(f, "due", f.due(deliveries), nil)
	f.exchange(threadKey(1), "C1/2", "b", "B", "B1")
	again := f.delivery(threadKey(1))
	same(f, "the same", [2]string{again.Key, again.Post.Text}, [2]string{d.Key, d.Post.Text})
	same(f, "attempts", again.Attempts, 1)
	same(f, "before its time", f.slot(again, 0), outbox.Slot{Wait: at})
	f.clock.advance(time.Second)
	same(f, "due", f.due(deliveries), []int64{d.Thread})
	f.sending(again)
	same(f, "paces", f.count("paces"), 0)
}

func readBack(f *fixture) {
	f.exchange(threadKey(1), "C1/1", "a", "A", "A1")
	d := f.delivery(threadKey(1))
	f.sending(d)
	at := f.clock.Now().Add(15 * time.Second)
	f.must(f.Outbox.AwaitReadBack(f.ctx, d, at, "the connection broke"))
	same(f, "due", f.due(deliveries), nil)
	f.clock.advance(15 * time.Second)
	again := f.delivery(threadKey(1))
	same(f, "state", again.State, outbox.Sending)
	same(f, "send by", again.SendBy, f.clock.Now().Add(-5*time.Second))

	next := f.successor("second").delivery(threadKey(1))
	same(f, "state after a crash", [2]string{string(next.State), next.Key}, [2]string{"sending", d.Key})
}

func restFails(f *fixture) {
	f.exchange(threadKey(1), "C1/1", "a", "A", "A1", "A2", "A3")
	f.exchange(threadKey(1), "C1/2", "b", "B", "B1")
	f.deliver(threadKey(1), "C1/9")
	d := f.delivery(threadKey(1))
	f.sending(d)
	f.must(f.Outbox.GiveUp(f.ctx, d, outbox.Failed, "the channel is gone"))
	same(f, "next", f.delivery(threadKey(1)).Post.Text, "B1")
	same(f, "failed with a cause", f.count("deliveries WHERE state = 'failed' AND error <> ''"), 2)
}

func unknownPasses(f *fixture) {
	f.exchange(threadKey(1), "C1/1", "a", "A", "A1", "A2")
	d := f.delivery(threadKey(1))
	f.sending(d)
	err := f.Outbox.GiveUp(f.ctx, d, outbox.Unknown, "the platform cannot tell")
	f.must(err)
	same(f, "next", f.delivery(threadKey(1)).Post.Text, "A2")
}

func notSentAgain(f *fixture) {
	f.exchange(threadKey(1), "C1/1", "a", "A", "A1")
	d := f.deliver(threadKey(1), "C1/9")
	_, err := f.Outbox.BeginSend(f.ctx, f.claim(d.Thread), d, outbox.Send{Timeout: time.Second})
	f.fails("begin to send a sent delivery", err, outbox.ErrDelivered)
	f.fails("resend a sent delivery", f.Outbox.Resend(f.ctx, d, f.clock.Now(), ""), outbox.ErrDelivered)
	err = f.Outbox.GiveUp(f.ctx, d, outbox.Failed, "")
	f.fails("give up a sent delivery", err, outbox.ErrDelivered)
	f.must(f.bySent(d, "C1/9"))
	same(f, "due", f.due(deliveries), nil)
	same(f, "thread of the reaction", f.accept(f.envelope(event.KindReaction, "", "C1/9")).Thread, d.Thread)
}

func committedMeanwhile(f *fixture) {
	const threads = 24
	var wait sync.WaitGroup
	errs := make([]error, 2*threads)
	for i := range threads {
		thread := threadKey(i)
		f.exchange(thread, fmt.Sprint("a", i), "a", "A", "A")
		d := f.delivery(thread)
		f.sending(d)
		f.message(thread, said(fmt.Sprint("b", i), "b"), triggers)
		run, lease := f.begin(thread), f.claim(d.Thread)
		wait.Go(func() { _, errs[2*i] = f.Outbox.Sent(f.ctx, d, fmt.Sprint("C1/", i)) })
		wait.Go(func() { _, errs[2*i+1] = f.Runs.CommitReply(f.ctx, lease, run, answer("B", "B")) })
	}
	wait.Wait()
	f.must(errors.Join(errs...))
	same(f, "threads that are due", len(f.due(deliveries)), threads)
}

// bySent records again that a delivery was sent, as after a lost answer.
func (f *fixture) bySent(d *outbox.Delivery, id string) error {
	_, err := f.Outbox.Sent(f.ctx, d, id)
	return err
}

// deliveryLost stalls a node after it began a delivery. Another node takes over the
// thread and begins the delivery again. The first node's writes fail.
func deliveryLost(f *fixture) {
	f.exchange(threadKey(1), "C1/1", "a", "A", "A1")
	d := f.delivery(threadKey(1))
	f.sending(d)
	next := f.successor("second")
	theirs := next.delivery(threadKey(1))
	f.must(next.Outbox.Resend(f.ctx, theirs, f.clock.Now(), "the post had not arrived"))
	next.sending(theirs)
	before := f.dump()
	for name, write := range map[string]func() error{
		"Resend":        func() error { return f.Outbox.Resend(f.ctx, d, f.clock.Now(), "too late") },
		"AwaitReadBack": func() error { return f.Outbox.AwaitReadBack(f.ctx, d, f.clock.Now(), "the outcome is unclear") },
		"GiveUp":        func() error { return f.Outbox.GiveUp(f.ctx, d, outbox.Failed, "too late") },
		"ResendMarked":  func() error { return f.Outbox.ResendMarked(f.ctx, d, "again", "too late") },
	} {
		f.fails(name, write(), outbox.ErrDelivered)
		same(f, "rows after "+name, f.dump(), before)
	}
}

func arrivalIsAFact(f *fixture) {
	f.exchange(threadKey(1), "C1/1", "a", "A", "A1")
	d := f.delivery(threadKey(1))
	f.sending(d)
	f.successor("second").claim(d.Thread)
	_, err := f.Outbox.Sent(f.ctx, d, "C1/9")
	f.must(err)
	same(f, "due", f.due(deliveries), nil)
}

func beingSent(f *fixture) {
	f.message(threadKey(1), said("C1/1", "a"), triggers)
	reply := answer("A", "A1", "A2", "")
	reply.Posts[2].File = &outbox.File{Name: "a.txt", Text: "A3"}
	f.commit(f.begin(threadKey(1)), reply)
	f.exchange(threadKey(2), "C1/2", "b", "B", "B1")
	sendingIn := func(thread event.ThreadKey, text string, files ...string) bool {
		m := said("C1/3", text)
		for _, name := range files {
			m.Attachments = append(m.Attachments, event.Attachment{ID: "at_1", Name: name})
		}
		yes, err := f.Outbox.IsSending(f.ctx, f.thread(thread), m)
		f.must(err)
		return yes
	}
	sending := func(text string, files ...string) bool { return sendingIn(threadKey(1), text, files...) }
	d := f.delivery(threadKey(1))
	same(f, "before", sending("A1") || sending(""), false)
	f.sending(d)
	f.sending(f.delivery(threadKey(2)))
	same(f, "during the send", sending("A1\n") && sending(""), true)
	same(f, "a file", sending("", "a.txt"), false)
	same(f, "the next post", sending("A2"), false)
	same(f, "another thread's", sending("B1"), false)
	f.must(f.bySent(d, "C1/9"))
	same(f, "afterwards", sending("A1") || sending(""), false)
	f.deliver(threadKey(1), "C1/10")
	f.sending(f.delivery(threadKey(1)))
	same(f, "during the send of a file", sending("") && sending("", "b.txt", "a.txt"), true)
	same(f, "a converted file", sending("", "at_1.jpeg"), true)
	same(f, "another file", sending("", "b.txt"), false)
	f.message(threadKey(3), said("C1/4", "c"), triggers)
	run := f.begin(threadKey(3))
	f.must(f.Runs.MarkSigned(f.ctx, f.claim(run.Thread), run, sign, time.Second))
	f.commit(run, answer("C"))
	f.sending(f.delivery(threadKey(3)))
	same(f, "during the removal of a sign", sendingIn(threadKey(3), ""), false)
}

func notOlder(f *fixture) {
	question := said("C1/1", "hi")
	question.SentAt = f.clock.Now().Add(-12 * time.Hour) // our clock leads
	f.message(threadKey(1), question, triggers)
	f.commit(f.begin(threadKey(1)), answer("Hello.", "Hello."))
	d := f.delivery(threadKey(1))
	same(f, "not before", d.NotBefore, question.SentAt)
	same(f, "created", d.CreatedAt, f.clock.Now())
	same(f, "asked", d.AskedAt, f.clock.Now())
}
