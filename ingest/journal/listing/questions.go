package listing

import (
	"context"
	"time"

	"parley/ingest/journal/messages"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
)

// Question is a question of an agent.
type Question struct {
	runs.Question
	Thread  Thread // ID, Key, Workspace, Platform, Channel and Room
	Parent  string // of the thread's channel; empty for none
	AskedAt time.Time
	State   string // open, answered, expired or final; also an open one may be too late to answer
	Text    string // that people see
	// First is the first of the messages that the run answers, with its sender and its words; zero if they are gone.
	First messages.Message
	body  string
}

// questionQuery reads questions, q in the condition, with their threads, t.
const questionQuery = `SELECT q.run, q.agent, q.asked_at, q.until_at, q.state, q.body, t.uuid, t.key, t.workspace, t.platform, t.channel, t.parent,
	` + ofRoom + `,
	` + channelType + `,
	coalesce((SELECT m.content FROM messages m WHERE m.run = q.run AND m.author = 'agent' LIMIT 1), ''), m.sender_id, m.content, m.metadata, coalesce(m.version, 1)
	FROM questions q JOIN threads t ON t.id = q.thread LEFT JOIN messages m ON m.row = (SELECT f.row FROM messages f WHERE f.run = q.run
		AND f.trigger = 'run' AND f.author IN ('human', 'bot') ORDER BY f.seq LIMIT 1) WHERE `

func (q *Question) dest() []any {
	t := &q.Thread
	return []any{&q.Run, &q.Agent, &q.AskedAt, &q.UntilAt, &q.State, &q.body, &t.ID, (*string)(&t.Key), &t.Workspace, (*string)(&t.Platform), &t.Channel, &q.Parent,
		&t.Room, (*string)(&t.Type), &q.Text, &q.First.SenderID, &q.First.Content, &q.First.Metadata, &q.First.Version}
}

// Questions returns the open questions of agents after a position, the one whose time ends first
// before the others. more reports whether more may follow. The position of a question is its
// QuestionCursor; it is empty for the first page.
func (l *Listing) Questions(ctx context.Context, after string, limit int) (list []Question, more bool, err error) {
	at, asked := storage.Millis(l.db.Now()), int64(0)
	if after != "" {
		if at, asked, err = threads.ReadCursor(after); err != nil {
			return nil, false, err
		}
	}
	list, err = storage.ReadOne(ctx, l.db, func(tx *storage.Txn) []Question {
		list := storage.UpTo(tx, (*Question).size, (*Question).dest, questionQuery+`q.state = 'open' AND (q.until_at, q.asked_at) > ($1, $2) ORDER BY q.until_at, q.asked_at LIMIT CAST($3 AS BIGINT)`, at, asked, int64(limit))
		for i := range list {
			tx.Fail(storage.Unpack(list[i].body, &list[i].Question))
		}
		return list
	})
	return list, storage.IsFull(list, limit, (*Question).size), err
}

// FindQuestion returns the question of a run by an id of any kind; see RunID. It fails with ErrNotFound if the run has asked none.
func (l *Listing) FindQuestion(ctx context.Context, run string) (q Question, err error) {
	if run, err = l.RunID(ctx, run); err != nil {
		return q, err
	}
	if err = l.db.One(ctx, q.dest(), questionQuery+`q.run = $1`, run); err == nil {
		err = storage.Unpack(q.body, &q.Question)
	}
	return q, err
}

func (q *Question) size() int { return len(q.Text) + len(q.body) + q.First.Size() }

// QuestionCursor is the question's position in the order of Questions.
func (q *Question) QuestionCursor() string { return threads.Cursor(q.UntilAt, q.AskedAt.UnixMilli()) }
