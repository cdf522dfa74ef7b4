package search

import (
	"context"
	"strings"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/storage"
	"parley/ingest/wake"
)

const (
	// batch bounds the messages of one transaction, because durable accepts wait for it.
	batch = 50
	// fillPause is the least pause between two transactions. It is as long as shareOfOthers transactions, so that the index
	// leaves most of the store's time to them.
	fillPause, shareOfOthers = 10 * time.Millisecond, 6
	// lateCommit is how long after its number was given a message may be committed. After it, FillSearch looks once more at
	// the messages that it has seen since the look before.
	lateCommit = 10 * time.Second
)

// mark is the number of the last message that was seen at a time.
type mark struct {
	row int64
	at  time.Time
}

// indexed is a message as the index needs it.
type indexed struct {
	messages.Message
	workspace string
	has       bool // the index has it already
}

// text returns what the index has of the message; empty for nothing, as of a row of a run.
func (m *indexed) text() string {
	if m.Author == messages.ByTool {
		return ""
	}
	return strings.Join(append(wordsOf(m.Content), ofWorkspace(m.workspace), ofThread(m.Thread)), " ")
}

const columns = `SELECT m.row, m.workspace, m.thread, m.sender_id, m.author, m.content, m.metadata, m.sent_at, m.deleted_at,
	EXISTS (SELECT 1 FROM search_words s WHERE s.rowid = m.row) FROM messages m WHERE `

func (m *indexed) dest() []any {
	return []any{&m.Row, &m.workspace, &m.Thread, &m.SenderID, (*string)(&m.Author), &m.Content, &m.Metadata, &m.SentAt, &m.DeletedAt, &m.has}
}

// FillSearch brings the index up to date: with the messages that are new, and with those that were edited, deleted or
// removed. The caller may end it at any time and call it again later. Only one call in all nodes may run at a time.
func (s *Search) FillSearch(ctx context.Context) error {
	if err := s.change(ctx); err != nil {
		return err
	}
	var stored int64
	_, err := s.db.Row(ctx, []any{&stored}, `SELECT position FROM search_progress WHERE id = 1`)
	at := s.seen
	again := at < stored || !s.db.Now().Before(s.looked.Add(lateCommit))
	if again {
		at, s.looked = stored, s.db.Now()
	}
	for err == nil {
		var page []indexed
		if page, err = storage.List(ctx, s.db, (*indexed).dest, columns+`m.row > $1 ORDER BY m.row LIMIT CAST($2 AS BIGINT)`, at, int64(batch)); err != nil || len(page) == 0 {
			break
		}
		at = page[len(page)-1].Row
		now := s.db.Now()
		if at > s.seen {
			s.seen, s.marks = at, append(s.marks, mark{at, now})
		}
		var settled int64
		for again && len(s.marks) > 0 && s.marks[0].row <= at && !s.marks[0].at.After(s.looked.Add(-lateCommit)) {
			settled, s.marks = max(settled, s.marks[0].row), s.marks[1:]
		}
		if settled <= stored {
			settled = 0
		} else {
			stored = settled
		}
		var wrote bool
		if wrote, err = s.add(ctx, page, settled); err != nil || len(page) < batch {
			break
		}
		if wrote {
			err = s.rest(ctx, now)
		}
	}
	return err
}

// rest pauses after a transaction that began at a time.
func (s *Search) rest(ctx context.Context, begun time.Time) error {
	if !wake.After(ctx, max(fillPause, shareOfOthers*s.db.Now().Sub(begun))) {
		return context.Cause(ctx)
	}
	return nil
}

// add adds the messages that the index lacks, and stores up to which one it is complete; 0 for no change. It returns
// whether there was anything to write.
func (s *Search) add(ctx context.Context, page []indexed, settled int64) (wrote bool, err error) {
	people, texts := map[person]*indexed{}, make([]string, len(page))
	for i := range page {
		if m := &page[i]; !m.has {
			texts[i] = m.text()
			if (m.Author == messages.ByHuman || m.Author == messages.ByBot) && m.DeletedAt.IsZero() {
				people[person{m.workspace, m.SenderID}] = m
			}
		}
	}
	if len(people) == 0 && settled == 0 && strings.Join(texts, "") == "" {
		return false, nil
	}
	return true, s.db.Change(ctx, "", func(tx *storage.Txn) {
		for i := range page {
			if texts[i] != "" {
				tx.Do(`DELETE FROM search_words WHERE rowid = $1`, page[i].Row)
				tx.Do(`INSERT INTO search_words (rowid, words) VALUES ($1, $2)`, page[i].Row, texts[i])
			}
		}
		for p, m := range people {
			p.learn(tx, m)
		}
		if settled > 0 {
			tx.Do(`INSERT INTO search_progress (id, position) VALUES (1, $1) ON CONFLICT (id) DO UPDATE SET position = excluded.position`, settled)
		}
	})
}

// person names a sender of messages.
type person struct{ workspace, sender string }

// learn stores the name that a sender had in a message.
func (p person) learn(tx *storage.Txn, m *indexed) {
	metadata, _ := event.ReadMetadata(m.Metadata) // an unreadable one names nobody
	name := metadata.SenderDisplayName
	tx.Do(`INSERT INTO search_people (workspace, sender_id, name, words, last_at) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (workspace, sender_id) DO UPDATE SET name = excluded.name, words = excluded.words, last_at = excluded.last_at
		WHERE excluded.last_at >= search_people.last_at`, p.workspace, p.sender, name, strings.Join(wordsOf(name), " "), storage.Millis(m.SentAt))
}

// change brings the messages up to date that were changed after they were stored. Each change has a number, which is
// read before the message, so that one that comes meanwhile is seen by the next call.
func (s *Search) change(ctx context.Context) error {
	type change struct{ id, row int64 }
	for {
		var list []change
		begun := s.db.Now()
		now, err := storage.Read(ctx, s.db, func(tx *storage.Txn) (now []indexed) {
			list = storage.Rows(tx, func(c *change) []any { return []any{&c.id, &c.row} },
				`SELECT id, message FROM search_changes ORDER BY id LIMIT CAST($1 AS BIGINT)`, int64(batch))
			for _, c := range list {
				now = append(now, storage.Rows(tx, (*indexed).dest, columns+`m.row = $1`, c.row)...)
			}
			return now
		})
		if err != nil || len(list) == 0 {
			return err
		}
		err = s.db.Change(ctx, "", func(tx *storage.Txn) {
			for _, c := range list {
				tx.Do(`DELETE FROM search_changes WHERE id = $1`, c.id)
				tx.Do(`DELETE FROM search_words WHERE rowid = $1`, c.row)
			}
			written := map[int64]bool{}
			for i := range now {
				if m := &now[i]; m.DeletedAt.IsZero() && !written[m.Row] {
					written[m.Row] = true
					tx.Do(`INSERT INTO search_words (rowid, words) VALUES ($1, $2)`, m.Row, m.text())
				}
			}
		})
		if err != nil {
			return err
		}
		s.db.Erased()
		if err := s.rest(ctx, begun); err != nil {
			return err
		}
	}
}
