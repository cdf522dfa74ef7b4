package journaltest

import (
	"errors"

	"parley/ingest/journal/listing"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/storage"
)

func heldPromises() []promise {
	return []promise{
		{"a failed part is sent again with the parts that failed with it, in order", resentTogether},
		{"a delivery with an unknown outcome is sent again under its key, before later ones", resentUnknown},
		{"a held delivery is sent again once", resentOnce},
		{"a confirmed delivery has its post, which no other delivery has", confirmed},
		{"a dropped delivery has no contents, and the rest of its reply is dropped", deliveryDropped},
		{"an open or sent delivery is not changed by an operator", notHeld},
		{"deliveries are listed newest first, by their states and in pages", deliveriesListed},
	}
}

// giveUp ends the thread's next delivery in a state.
func (f *fixture) giveUp(thread int, state outbox.State) *outbox.Delivery {
	f.Helper()
	d := f.delivery(threadKey(thread))
	f.sending(d)
	f.must(f.Outbox.GiveUp(f.ctx, d, state, "the platform's error"))
	return d
}

// held returns a held delivery.
func (f *fixture) held(id int64) *outbox.Delivery {
	f.Helper()
	d, err := f.Outbox.HeldDelivery(f.ctx, id)
	f.must(err)
	return d
}

// posts sends the thread's open deliveries and returns their texts.
func (f *fixture) posts(thread int) (texts []string) {
	f.Helper()
	for {
		d, err := f.Outbox.NextDelivery(f.ctx, f.thread(threadKey(thread)))
		f.must(err)
		if d == nil {
			return texts
		}
		texts = append(texts, d.Post.Text)
		f.deliver(threadKey(thread), "C1/"+d.Key)
	}
}

func resentTogether(f *fixture) {
	f.exchange(threadKey(1), "C1/1", "a", "A", "A1", "A2", "A3")
	failed := f.giveUp(1, outbox.Failed)
	f.exchange(threadKey(1), "C1/2", "b", "B", "B1")
	f.must(f.Outbox.ResendHeld(f.ctx, f.held(failed.ID)))
	same(f, "due", f.due(deliveries), []int64{failed.Thread})
	same(f, "posts", f.posts(1), []string{"A1", "A2", "A3", "B1"})
}

func resentUnknown(f *fixture) {
	f.exchange(threadKey(1), "C1/1", "a", "A", "A1", "A2")
	unknown := f.giveUp(1, outbox.Unknown)
	f.must(f.Outbox.ResendHeld(f.ctx, f.held(unknown.ID)))
	same(f, "key", f.delivery(threadKey(1)).Key, unknown.Key)
	same(f, "posts", f.posts(1), []string{"A1", "A2"})
}

func resentOnce(f *fixture) {
	f.exchange(threadKey(1), "C1/1", "a", "A", "A1")
	d := f.held(f.giveUp(1, outbox.Unknown).ID)
	f.must(f.Outbox.ResendHeld(f.ctx, d))
	f.fails("at once", f.Outbox.ResendHeld(f.ctx, d), outbox.ErrDelivered)
	same(f, "posts", f.posts(1), []string{"A1"})
	f.fails("after it was sent", f.Outbox.ResendHeld(f.ctx, d), outbox.ErrDelivered)
	same(f, "due", f.due(deliveries), nil)
}

func confirmed(f *fixture) {
	f.exchange(threadKey(1), "C1/1", "a", "A", "A1", "A2")
	unknown := f.giveUp(1, outbox.Unknown)
	f.deliver(threadKey(1), "C1/9")
	if err := f.Outbox.ConfirmDelivery(f.ctx, unknown.ID, "C1/9"); err == nil {
		f.Fatalf("the post of another delivery is confirmed")
	}
	f.must(f.Outbox.ConfirmDelivery(f.ctx, unknown.ID, "C1/8"))
	f.must(f.Outbox.ConfirmDelivery(f.ctx, unknown.ID, "C1/8")) // a repetition changes nothing
	f.fails("another post", f.Outbox.ConfirmDelivery(f.ctx, unknown.ID, "C1/7"), outbox.SentError{PostID: "C1/8"})
	d, err := f.Listing.Delivery(f.ctx, unknown.ID)
	f.must(err)
	same(f, "listed", []string{d.State, d.PlatformID, d.Error}, []string{"sent", "C1/8", ""})
	same(f, "due", f.due(deliveries), nil)
}

func deliveryDropped(f *fixture) {
	f.exchange(threadKey(1), "C1/1", "a", "A", "A1", "A2")
	f.exchange(threadKey(1), "C1/2", "b", "B", "B1")
	failed := f.giveUp(1, outbox.Failed)
	f.must(f.Outbox.DropDelivery(f.ctx, failed.ID))
	f.must(f.Outbox.DropDelivery(f.ctx, failed.ID)) // a repetition changes nothing
	same(f, "dropped", f.count("deliveries WHERE state = 'dropped' AND payload = ''"), 2)
	_, err := f.Outbox.HeldDelivery(f.ctx, failed.ID)
	f.fails("read", err, outbox.ErrDelivered)
	same(f, "posts", f.posts(1), []string{"B1"})
}

func notHeld(f *fixture) {
	f.exchange(threadKey(1), "C1/1", "a", "A", "A1", "A2")
	sent := f.deliver(threadKey(1), "C1/9")
	open := f.delivery(threadKey(1))
	for id, want := range map[int64]error{sent.ID: outbox.SentError{PostID: "C1/9"}, open.ID: outbox.ErrOpen, 12345: storage.ErrNotFound} {
		_, err := f.Outbox.HeldDelivery(f.ctx, id)
		f.fails("read", err, want)
		f.fails("confirm", f.Outbox.ConfirmDelivery(f.ctx, id, "C1/7"), want)
		f.fails("drop", f.Outbox.DropDelivery(f.ctx, id), want)
	}
	f.fails("send an open one", f.Outbox.ResendHeld(f.ctx, open), outbox.ErrDelivered)
}

func deliveriesListed(f *fixture) {
	f.exchange(threadKey(1), "C1/1", "a", "A", "A1", "A2", "A3", "A4")
	sent, unknown, failed := f.deliver(threadKey(1), "C1/9"), f.giveUp(1, outbox.Unknown), f.giveUp(1, outbox.Failed)
	list := func(before int64, limit int, states ...string) []int64 {
		rows, err := f.Listing.Deliveries(f.ctx, states, before, limit)
		f.must(err)
		return each(rows, func(d listing.Delivery) int64 { return d.ID })
	}
	last := failed.ID + 1
	same(f, "all", list(0, 10), []int64{last, failed.ID, unknown.ID, sent.ID})
	same(f, "a page", list(failed.ID, 1), []int64{unknown.ID})
	same(f, "held", list(0, 10, "unknown", "failed"), []int64{last, failed.ID, unknown.ID})
	same(f, "a page of them", list(last, 1, "unknown", "failed"), []int64{failed.ID})
	for state, want := range map[string][]int64{"sent": {sent.ID}, "pending": {}, "sending": {}, "dropped": {}} {
		same(f, state, list(0, 10, state), want)
	}
	d, err := f.Listing.Delivery(f.ctx, unknown.ID)
	f.must(err)
	same(f, "one", []any{d.Thread, d.Part, d.Parts, d.State, d.Attempts, d.Error}, []any{threadKey(1), int64(1), int64(4), "unknown", int64(1), "the platform's error"})
	if _, err := f.Listing.Delivery(f.ctx, 12345); !errors.Is(err, storage.ErrNotFound) {
		f.Fatalf("unknown: %v", err)
	}
}
