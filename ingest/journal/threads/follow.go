package threads

import (
	"strconv"

	"parley/ingest/event"
	"parley/ingest/journal/storage"
)

// FollowThread returns a channel that gets a value after each change of a thread's messages on this
// node, and soon after most changes on other nodes. The caller ends with stop.
func (s *Threads) FollowThread(t *Thread) (changed <-chan struct{}, stop func()) {
	return s.db.Follow(Words(t.Row))
}

// Words are the words of ThreadChanged.
func Words(thread int64) string { return storage.OfThread + strconv.FormatInt(thread, 10) }

// ThreadChanged wakes the readers of a thread's messages on this node and, if tell is set, on
// others.
func ThreadChanged(db *storage.DB, thread int64, tell bool) { db.Changed(Words(thread), tell) }

// RunBegun wakes the readers of a thread whose next run has begun, those on other nodes if the thread is one of our API.
func RunBegun(db *storage.DB, thread int64, key event.ThreadKey) {
	_, ours := ownUUID(key)
	ThreadChanged(db, thread, ours)
}

// FollowNews is FollowThread for the news of an actor.
func (s *Threads) FollowNews(workspace, actor string) (changed <-chan struct{}, stop func()) {
	return s.db.Follow(newsWords(workspace, actor))
}

func newsWords(workspace, actor string) string { return storage.OfNews + workspace + " " + actor }

// NewsChanged wakes the readers of actors' news on all nodes.
func NewsChanged(db *storage.DB, workspace string, actors ...string) {
	for _, actor := range actors {
		db.Changed(newsWords(workspace, actor), true)
	}
}
