// Package search finds messages by their words, and people by their names. Its index is filled after the
// messages are stored, so that no message waits for it.
package search

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/storage"
)

// Search is the index of the messages of a journal.
type Search struct {
	db *storage.DB
	// marks are the places in the order of messages that this process has reached, up to seen. looked is when it last looked
	// once more at those that are not settled. Only FillSearch uses them.
	marks  []mark
	seen   int64
	looked time.Time
}

// New returns the index in a store.
func New(db *storage.DB) *Search { return &Search{db: db} }

// OfWorkspace returns the step for the people of a removed workspace. Removed messages leave the index like deleted ones.
func OfWorkspace(workspace string) storage.Step {
	return storage.ByKey(workspace, "search_people", "sender_id")
}

// maxWords bounds the words of a query.
const maxWords = 20

// Query asks for messages.
type Query struct {
	Workspace string // empty for all
	Thread    string // UUID of the only thread, which is of the workspace; empty for all
	Text      string // a message is found if it has each of these words, in any order and case
	Before    string // next of the page before; empty for the first page
	Limit     int
}

// Found is a message that was found, in its present state.
type Found struct {
	messages.Message
	ThreadID  string // its thread's UUID
	Workspace string
	Channel   string // of the thread
}

func (f *Found) dest() []any {
	return []any{&f.Row, &f.UUID, &f.ThreadID, &f.Workspace, &f.Channel, &f.Seq, &f.SenderID, (*string)(&f.Author), &f.Content, &f.Metadata, &f.Version, &f.FileCount, &f.SentAt, &f.EditedAt, &f.DeletedAt, &f.ExternalID, &f.Memory, &f.Run}
}

// Position is the message's position in the order of a search; see Query.
func (f *Found) Position() string { return strconv.FormatInt(f.Row, 10) }

func (f *Found) size() int { return f.Size() }

// SearchMessages returns a page of the messages that have each word of a text, the last recorded first. It finds a
// message a moment after that is recorded, and never a deleted one. next is the position of the following page; empty if
// there is none. It fails with ErrNotFound if the workspace
// has no such thread, and with event.FieldErrors if the text has no word.
func (s *Search) SearchMessages(ctx context.Context, q Query) (list []Found, next string, err error) {
	var faults event.FieldErrors
	words, before := wordsOf(q.Text), int64(1)<<62
	faults.Check(len(words) > 0 && len(words) <= maxWords, "query", "must have 1 to "+strconv.Itoa(maxWords)+" words")
	if q.Before != "" {
		n, err := strconv.ParseInt(q.Before, 10, 64)
		faults.Check(err == nil, "before", "must be next of the page before")
		before = n
	}
	if len(faults) > 0 {
		return nil, "", faults
	}
	list, err = storage.Read(ctx, s.db, func(tx *storage.Txn) []Found {
		if q.Workspace != "" && q.Thread == "" {
			words = append(words, ofWorkspace(q.Workspace))
		}
		if q.Thread != "" {
			var thread int64
			if !tx.Row([]any{&thread}, `SELECT id FROM threads WHERE uuid = $1 AND workspace = $2`, q.Thread, q.Workspace) {
				tx.Fail(storage.ErrNotFound)
			}
			words = append(words, ofThread(thread))
		}
		all := strings.Join(words, " ")
		list := storage.UpTo(tx, (*Found).size, (*Found).dest, `SELECT m.row, m.id, t.uuid, t.workspace, t.channel, m.seq, m.sender_id, m.author, m.content, m.metadata, m.version, m.files, m.sent_at, m.edited_at, m.deleted_at, m.external_id, m.memory, m.run
			FROM messages m JOIN threads t ON t.id = m.thread
			WHERE m.row IN (SELECT rowid FROM `+s.table(tx, all, before, q.Limit)+` WHERE rowid < $2 ORDER BY rowid DESC LIMIT CAST($3 AS BIGINT)) ORDER BY m.row DESC`,
			all, before, int64(q.Limit))
		for i := range list {
			messages.LoadFiles(tx, &list[i].Message)
		}
		return list
	})
	if storage.IsFull(list, q.Limit, (*Found).size) {
		next = strconv.FormatInt(list[len(list)-1].Row, 10)
	}
	// The index may still have the words of a message that was deleted a moment ago.
	return slices.DeleteFunc(list, func(f Found) bool { return !f.DeletedAt.IsZero() }), next, err
}

// newest is the number of messages in which a page of common words is looked for first.
const newest = 5_000

// table returns the table of the rows that have words. An engine that would read all of them reads the newest messages in
// their order instead, if these fill the page.
func (s *Search) table(tx *storage.Txn, words string, before int64, limit int) string {
	const index = `search_words($1)`
	engine, ok := s.db.Engine.(storage.WordScanner)
	if !ok {
		return index
	}
	var n int64
	tx.Row([]any{&n}, `SELECT count(*) FROM (SELECT rowid FROM `+engine.WordScan()+`
		WHERE rowid < $2 AND rowid >= (SELECT coalesce(max(rowid), 0) FROM search_words WHERE rowid < $2) - CAST($4 AS BIGINT)
		ORDER BY rowid DESC LIMIT CAST($3 AS BIGINT)) found`, words, before, int64(limit), int64(newest))
	if n < int64(limit) {
		return index
	}
	return engine.WordScan()
}

// Person is a person or a bot that has written in a workspace.
type Person struct {
	SenderID string
	Name     string    // the newest one
	LastAt   time.Time // of the newest message
}

// FindPeople returns the people of a workspace with a sender_id, or with a name that contains a text, the last active first.
func (s *Search) FindPeople(ctx context.Context, workspace, text string, limit int) ([]Person, error) {
	return storage.List(ctx, s.db, func(p *Person) []any { return []any{&p.SenderID, &p.Name, &p.LastAt} },
		`SELECT sender_id, name, last_at FROM search_people WHERE workspace = $1 AND (sender_id = $2 OR words LIKE $3)
		ORDER BY last_at DESC, sender_id LIMIT CAST($4 AS BIGINT)`, workspace, text, "%"+strings.Join(wordsOf(text), " ")+"%", int64(limit))
}

// People returns all people and bots that have written, the last active first.
func (s *Search) People(ctx context.Context) ([]Writer, error) {
	return storage.List(ctx, s.db, func(w *Writer) []any { return []any{&w.Workspace, &w.SenderID, &w.Name, &w.LastAt} },
		`SELECT workspace, sender_id, name, last_at FROM search_people ORDER BY last_at DESC, workspace, sender_id`)
}

// Writer is a person or a bot that has written in a workspace.
type Writer struct {
	Workspace string
	Person
}

// Forget removes the name of a person who has not written since a time.
func (s *Search) Forget(ctx context.Context, workspace, sender string, since time.Time) error {
	return s.db.Change(ctx, "", func(tx *storage.Txn) {
		tx.Do(`DELETE FROM search_people WHERE workspace = $1 AND sender_id = $2 AND last_at <= $3`, workspace, sender, storage.Millis(since))
	})
}

// Aged returns the step for the names of people who have written nothing since a bound.
func Aged(before int64) storage.Step {
	return storage.ByAge("search_people", "workspace, sender_id", "last_at", before)
}
