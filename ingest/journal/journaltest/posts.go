package journaltest

import (
	"errors"

	"github.com/google/uuid"

	"parley/ingest/event"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/places"
	"parley/ingest/journal/record"
	"parley/ingest/journal/storage"
)

func postPromises() []promise {
	return []promise{
		{"a post is stored once, is a turn of its thread, and its deliveries are due", postStored},
		{"a post has the state of its parts", postState},
	}
}

// post stores a post of a program with two parts in the first thread.
func (f *fixture) post(id, content string) (thread int64, added bool) {
	f.Helper()
	thread, added, err := f.AddPost(f.ctx, record.NewPost{
		ID: id, Thread: places.Thread{Key: threadKey(1), ID: f.threadID(threadKey(1)), Workspace: workspace}, Platform: event.Slack, Channel: channel, Agent: agent,
		Content: content, Metadata: []byte("{}"), Posts: []outbox.Post{{Channel: channel, Text: content}, {Channel: channel, Text: "more"}},
	})
	f.must(err)
	return thread, added
}

func postStored(f *fixture) {
	f.message(threadKey(1), said("C1/1", "passive"), passive)
	id := uuid.NewString()
	thread, added := f.post(id, "RAIN")
	same(f, "added", added, true)
	again, added := f.post(id, "RAIN")
	same(f, "added again", added, false)
	same(f, "its thread", again, thread)
	f.message(threadKey(1), said("C1/2", "how much?"), triggers)
	same(f, "turns", f.turnsOf(f.begin(threadKey(1)), 50), []string{"passive||RAIN", "|how much?|"})
	same(f, "thread", f.lines(threadKey(1)), []string{"1 passive", "2 RAIN", "3 how much?"})
	d, err := f.NextDelivery(f.ctx, thread)
	f.must(err)
	same(f, "its first part", d.Post.Text, "RAIN")
	same(f, "nobody asked", d.AskedAt.IsZero() && d.Begins(), true)
	_, err = f.Sent(f.ctx, d, "C1/9")
	f.must(err)
	reply, err := f.ReplyID(f.ctx, workspace, "C1/9")
	f.must(err)
	same(f, "the message of its post", reply, id)
}

func postState(f *fixture) {
	_, err := f.PostOf(f.ctx, uuid.NewString())
	same(f, "an unknown post", errors.Is(err, storage.ErrNotFound), true)
	id := uuid.NewString()
	thread, _ := f.post(id, "RAIN")
	state := func(want outbox.State, platformID string) {
		f.Helper()
		p, err := f.PostOf(f.ctx, id)
		f.must(err)
		same(f, "state", p.State, want)
		same(f, "the id of its first part", p.PlatformID, platformID)
		same(f, "its place", []any{p.Thread.Key, p.Channel}, []any{threadKey(1), channel})
	}
	state(outbox.Pending, "")
	for i, want := range []outbox.State{outbox.Sending, outbox.Unknown} {
		d, err := f.NextDelivery(f.ctx, thread)
		f.must(err)
		if i == 0 {
			_, err = f.Sent(f.ctx, d, "C1/9")
		} else {
			err = f.GiveUp(f.ctx, d, outbox.Unknown, "nobody knows")
		}
		f.must(err)
		state(want, "C1/9")
	}
}
