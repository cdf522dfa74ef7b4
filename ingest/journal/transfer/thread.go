package transfer

import (
	"context"
	"fmt"

	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
)

// threadRows are the rows that belong to a thread, by table: the condition that selects them, in which $1 is
// the row id of the thread and $2 the thread_seq of its first copied message.
var threadRows = []struct{ table, condition string }{
	{"threads", `id = $1 AND next_seq >= $2`},
	{"messages", `thread = $1 AND seq >= $2`},
	{"attachments", `message IN (SELECT row FROM messages WHERE thread = $1 AND seq >= $2)`},
	{"runs", `thread = $1 AND id IN (SELECT run FROM messages WHERE thread = $1 AND seq >= $2)`},
	{"deliveries", `thread = $1 AND run IN (SELECT run FROM messages WHERE thread = $1 AND seq >= $2)`},
}

// CopyThread copies the newest messages of a thread, at most so many, into a store that nobody uses and that has no
// thread yet, with their runs and posts. In the copy nothing waits: no envelope, no run and no delivery.
// The thread is named by its UUID. CopyThread fails with storage.ErrNotFound if there is no such thread.
func CopyThread(ctx context.Context, from, to storage.Engine, uuid string, most int64) error {
	var tables []table
	copied := map[string][]row{}
	err := from.Read(ctx, func(tx storage.Tx) error {
		var thread, first int64
		found, err := tx.Row([]any{&thread, &first}, `SELECT id, next_seq - CAST($2 AS BIGINT) FROM threads WHERE uuid = $1`, uuid, most)
		if err != nil || !found {
			return orNotFound(err)
		}
		if tables, err = read(tx); err != nil {
			return err
		}
		for _, part := range threadRows {
			t := named(tables, part.table)
			copied[t.Name] = nil // a repeated transaction begins again
			err := tx.Rows(func(scan func(...any) error) error {
				r := make(row, len(t.Columns))
				cells := make([]any, len(r))
				for i := range r {
					cells[i] = &r[i]
				}
				copied[t.Name] = append(copied[t.Name], r)
				return scan(cells...)
			}, "SELECT "+t.list(len(t.Columns))+" FROM "+t.Name+" WHERE "+part.condition, thread, first)
			if err != nil {
				return fmt.Errorf("read %s of the thread: %w", t.Name, err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return to.Write(ctx, storage.WriteOptions{}, func(tx storage.Tx) error {
		for _, part := range threadRows {
			t := named(tables, part.table)
			for _, r := range copied[t.Name] {
				if _, err := tx.Exec(t.insert(), r...); err != nil {
					return fmt.Errorf("write %s of the thread: %w", t.Name, err)
				}
			}
		}
		err := threads.Calm(tx)
		if err == nil {
			_, err = tx.Exec(`DELETE FROM deliveries WHERE state <> 'sent'`)
		}
		return err
	})
}

func orNotFound(err error) error {
	if err == nil {
		return storage.ErrNotFound
	}
	return err
}

// named returns a table by its name; without columns, if the store lacks it.
func named(tables []table, name string) table {
	for _, t := range tables {
		if t.Name == name {
			return t
		}
	}
	return table{Name: name}
}
