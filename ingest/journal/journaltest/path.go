package journaltest

import (
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/runs"
)

func pathPromises() []promise {
	return []promise{
		{"a message is accepted, recorded, answered and its reply delivered", wholePath},
	}
}

func wholePath(f *fixture) {
	a := f.envelope(event.KindMessage, threadKey(1), "C1/1")
	a.Envelope.Body = []byte("\x00\xff raw \r\n")
	accepted := f.accept(a)
	same(f, "threads with intake", f.due(intake), []int64{accepted.Thread})

	pending, err := f.Envelopes.NextEnvelopes(f.ctx, accepted.Thread, 10)
	f.must(err)
	same(f, "pending", pending, []envelopes.Pending{{ID: accepted.ID, Envelope: a.Envelope, MessageUUID: accepted.MessageUUID, Kind: event.KindMessage,
		MessageID: a.Keys.MessageID, Dedupe: a.Keys.Dedupe, AcceptedAt: f.clock.Now()}})

	m := said("C1/1", "<@B> hi")
	result := f.record(accepted.Thread, accepted.ID, event.Event{Kind: event.KindMessage, Message: m}, triggers)
	same(f, "result", result.Result, event.Result{Disposition: event.Stored, Reason: event.ReasonMention})
	same(f, "pending afterwards", result.Pending, 0)
	same(f, "threads with intake", f.due(intake), nil)
	same(f, "threads with turns", f.due(turns), []int64{accepted.Thread})

	run := f.begin(threadKey(1))
	same(f, "asked", contents(run.Messages), []string{"<@B> hi"})
	transcript, err := f.Runs.Transcript(f.ctx, run, runs.Window{Turns: 50, Bytes: 1000, Context: 20})
	f.must(err)
	same(f, "turns", len(transcript), 1)
	same(f, "question", contents(transcript[0].Messages), []string{"<@B> hi"})

	ended := f.commit(run, answer("Hello.", "Hello."))
	same(f, "result", ended.State, runs.Done)
	same(f, "threads with turns", f.due(turns), nil)
	same(f, "threads with deliveries", f.due(deliveries), []int64{accepted.Thread})

	d, err := f.Outbox.NextDelivery(f.ctx, accepted.Thread)
	f.must(err)
	same(f, "post", d.Post, outbox.Post{Channel: channel, Place: "1", Text: "Hello."})
	slot, err := f.Outbox.BeginSend(f.ctx, f.claim(accepted.Thread), d, outbox.Send{Timeout: 10 * time.Second})
	f.must(err)
	same(f, "send by", slot.SendBy, f.clock.Now().Add(10*time.Second))
	more, err := f.Outbox.Sent(f.ctx, d, "C1/9")
	f.must(err)
	same(f, "more to deliver", more, false)
	same(f, "threads with deliveries", f.due(deliveries), nil)
	same(f, "thread", f.lines(threadKey(1)), []string{"1 <@B> hi", "2 Hello."})
}
