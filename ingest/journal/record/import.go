package record

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
)

// ImportMessage is a message of version 0 from another system, for Import.
type ImportMessage struct {
	ID        string // of the other system; each is stored once in a workspace
	Own       bool   // our agent wrote it
	Content   string // begins with the header that the other system wrote
	Metadata  []byte // an object
	SenderID  string
	Bot       bool // the sender is a program
	CreatedAt time.Time
}

// ImportThread is the thread of imported messages.
type ImportThread struct {
	Key       event.ThreadKey
	ID        string // its UUID
	Workspace string
	Platform  event.Platform
	Channel   string
	Agent     string // the author of our own messages
}

// Import stores the messages of a thread, in this order, after its other messages. It
// returns the number of new ones. Each question is a turn that has ended, with the answer
// that follows it, if there is one. No message starts a run.
func (r *Recorder) Import(ctx context.Context, to ImportThread, list []ImportMessage) (added int, err error) {
	return storage.Write(ctx, r.db, storage.WriteOptions{Thread: to.Key}, func(tx *storage.Txn) int {
		i := importTx{Txn: tx, to: to}
		i.open()
		for _, m := range list {
			i.add(m)
		}
		threads.Finish(tx, i.thread, i.nextSeq, i.lastAt, i.begunSeq)
		return i.added
	})
}

// importTx is one Import inside its transaction.
type importTx struct {
	*storage.Txn
	to ImportThread

	thread, nextSeq, begunSeq, lastAt int64
	question                          string // the run of the last imported message, if that waits for its answer
	added                             int
}

// open makes the thread or finds it, and locks its row.
func (i *importTx) open() {
	threads.Add(i.Txn, i.to.Platform, i.to.Channel, threads.Thread{Key: i.to.Key, ID: i.to.ID, Workspace: i.to.Workspace})
	i.Row([]any{&i.thread, &i.nextSeq, &i.begunSeq}, `SELECT id, next_seq, begun_seq FROM threads WHERE key = $1 FOR UPDATE`, string(i.to.Key))
	i.Row([]any{&i.question}, `SELECT run FROM messages WHERE thread = $1 AND seq = $2 AND origin = 'import' AND author <> 'agent'`, i.thread, i.nextSeq-1)
}

// add stores a message, unless its id is known: as that of an imported message, or as that of one of the workspace itself, from which the
// messages were exported.
func (i *importTx) add(m ImportMessage) {
	id, past := "import/"+m.ID, pastID(i.to.Workspace, m.ID)
	if i.Has(`SELECT 1 FROM messages WHERE workspace = $1 AND external_id = $2`, i.to.Workspace, id) {
		return
	}
	var of string
	if i.Row([]any{&of}, `SELECT workspace FROM messages WHERE id = $1`, past) {
		if of == i.to.Workspace {
			return
		}
		past = madeID(i.to.Workspace, m.ID)
	}
	if messages.IsForgotten(i.Txn, i.to.Workspace, m.SenderID, m.CreatedAt) {
		return
	}
	author, run, answers := messages.ByHuman, i.question, m.Own && i.question != ""
	switch {
	case m.Own:
		author, m.SenderID = messages.ByAgent, "agent:"+i.to.Agent
	case m.Bot:
		author = messages.ByBot
	}
	var after, base any // of a turn's first message: the block of the turn
	if !answers {
		run = uuid.Must(uuid.NewV7()).String()
		after, base = i.begunSeq, i.nextSeq
		i.begunSeq = i.nextSeq
	}
	if i.question = run; m.Own {
		i.question = ""
	}
	messages.InsertFinished(i.Txn, &messages.Message{
		UUID: past, Thread: i.thread, Seq: i.nextSeq, ExternalID: id, SenderID: m.SenderID, Author: author,
		Content: m.Content, Metadata: m.Metadata, Origin: messages.Imported, CreatedAt: m.CreatedAt, Run: run,
	}, i.to.Workspace, after, base)
	i.nextSeq++
	i.lastAt = max(i.lastAt, storage.Millis(m.CreatedAt))
	i.added++
}

// pastID returns the UUID of an imported message: its own, or one that is made of it.
func pastID(workspace, id string) string {
	if own, err := uuid.Parse(id); err == nil && len(id) == len(own.String()) {
		return own.String()
	}
	return madeID(workspace, id)
}

// madeID returns a UUID that is made of the id of an imported message and its workspace.
func madeID(workspace, id string) string {
	return uuid.NewSHA1(uuid.NameSpaceURL, fmt.Appendf(nil, "parley:import:%s:%s", workspace, id)).String()
}
