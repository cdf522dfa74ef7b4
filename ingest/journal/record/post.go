package record

import (
	"context"

	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/schedules"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
)

// NewPost is a message that a program posts in a thread without a question before it.
type NewPost struct {
	ID     string         // a UUID; a post is stored once by it
	Thread threads.Thread // its Key, ID and Workspace; it is made if there is none
	// Queue, if it has a Key, is the thread of the deliveries, which leave in its order; it is made as Thread is. It has no messages.
	Queue    threads.Thread
	Platform event.Platform
	Channel  string
	Agent    string // in whose name the program speaks
	Content  string
	Metadata []byte
	Posts    []outbox.Post
	Files    []event.Attachment // of the message; a platform gets its files by Posts
}

// AddPost stores a post as a turn that is only a reply, and its deliveries, which are due at once. It stores
// nothing, and returns false, if there is a post with the id already. queue is the thread of the deliveries.
func (r *Recorder) AddPost(ctx context.Context, n NewPost) (queue int64, added bool, err error) {
	var thread int64
	added, err = storage.Write(ctx, r.db, storage.WriteOptions{Urgent: true, Thread: n.Thread.Key}, func(tx *storage.Txn) bool {
		var seq, begun int64
		threads.Add(tx, n.Platform, n.Channel, n.Thread)
		tx.Row([]any{&thread, &seq, &begun}, `SELECT id, next_seq, begun_seq FROM threads WHERE key = $1 FOR UPDATE`, string(n.Thread.Key))
		if queue = thread; n.Queue.Key != "" {
			threads.Add(tx, n.Platform, n.Channel, n.Queue)
			tx.Row([]any{&queue}, `SELECT id FROM threads WHERE key = $1`, string(n.Queue.Key))
		}
		if tx.Has(`SELECT 1 FROM messages WHERE workspace = $1 AND external_id = $2`, n.Thread.Workspace, n.ID) {
			return false
		}
		now := storage.Millis(r.db.Now())
		m := messages.Message{
			UUID: n.ID, ExternalID: n.ID, Thread: thread, Seq: seq, SenderID: "agent:" + n.Agent, Author: messages.ByAgent, Content: n.Content, Metadata: n.Metadata,
			Version: messages.ContractVersion, Origin: messages.API, CreatedAt: storage.Instant(now), Run: n.ID, FileCount: int64(len(n.Files)),
		}
		messages.InsertFinished(tx, &m, n.Thread.Workspace, begun, seq)
		messages.AddFiles(tx, &m, 0, n.Files)
		runs.PostNotice(tx, queue, n.Thread.Workspace, n.ID, n.Posts, now)
		threads.Grow(tx, thread, now)
		threads.CountChange(tx, thread)
		threads.SetBegun(tx, thread, seq)
		return true
	})
	if added {
		threads.ThreadChanged(r.db, thread, true)
	}
	return queue, added, err
}

// MovePosts moves the posts of a thread with their deliveries behind the messages of another one, which is made if
// there is none: the platform has opened the conversation for which the posts wait. address is that of the deliveries
// there. It returns the other thread. It fails with ErrFenced if the claim has ended.
func (r *Recorder) MovePosts(ctx context.Context, claim *threads.Claim, to threads.Thread, platform event.Platform, channel event.Channel, address outbox.Post) (thread int64, err error) {
	thread, err = storage.Write(ctx, r.db, storage.WriteOptions{Thread: claim.Key}, func(tx *storage.Txn) (thread int64) {
		var seq, begun int64
		threads.Lock(tx, claim)
		threads.Add(tx, platform, channel.ID, to)
		threads.LearnChannel(tx, to.Workspace, channel)
		tx.Row([]any{&thread, &seq, &begun}, `SELECT id, next_seq, begun_seq FROM threads WHERE key = $1 FOR UPDATE`, string(to.Key))
		for _, row := range messages.RowsOf(tx, claim.Thread) {
			messages.Move(tx, row, thread, begun, seq)
			begun, seq = seq, seq+1
		}
		threads.Finish(tx, thread, seq, storage.Millis(r.db.Now()), begun)
		threads.CountChange(tx, thread)
		threads.Empty(tx, claim.Thread)
		outbox.Move(tx, claim.Thread, thread, address)
		return thread
	})
	if err == nil {
		threads.ThreadChanged(r.db, thread, true)
	}
	return thread, err
}

// OpenUnder makes the thread of the replies to a post of ours, which is given by its external id, from the Key, ID and
// Workspace of to. The schedules of the thread from, which begins with the post, are for the people there; an empty one has none.
func (r *Recorder) OpenUnder(ctx context.Context, to threads.Thread, platform event.Platform, channel, post string, from event.ThreadKey) error {
	return r.db.Change(ctx, to.Key, func(tx *storage.Txn) {
		threads.Add(tx, platform, channel, to)
		threads.OpenOn(tx, string(to.Key), post)
		if from != "" {
			schedules.Move(tx, to.Workspace, from, to.Key)
		}
	})
}

// Post is a stored post.
type Post struct {
	ID string
	threads.Spot
	// State is the state of the post's deliveries as a whole, as outbox.StateOf returns it; sent if there is none.
	State outbox.State
	// PlatformID is the platform's id of the first part; empty if it was not sent.
	PlatformID string
	Error      string // of the first part with one
	// Link is the address at which people see it; empty for none. The outbox sets it.
	Link string
}

// PostOf returns a post. It fails with ErrNotFound if there is none.
func (r *Recorder) PostOf(ctx context.Context, id string) (p Post, err error) {
	p, err = storage.Read(ctx, r.db, func(tx *storage.Txn) (p Post) {
		var thread int64
		if !tx.Row([]any{&thread}, `SELECT thread FROM messages WHERE id = $1 AND author = 'agent' AND origin = 'api'`, id) {
			tx.Fail(storage.ErrNotFound)
		}
		p.Spot = threads.SpotAt(tx, thread)
		p.ID = id
		p.State, p.PlatformID, p.Error = outbox.StateOf(tx, id)
		return p
	})
	return p, err
}
