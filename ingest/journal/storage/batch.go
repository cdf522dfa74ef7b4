package storage

import (
	"context"
	"slices"
)

// threadBatch bounds the threads that one transaction locks.
const threadBatch = 100

// EachThread changes the threads that meet a condition, a few in a transaction. All such
// transactions lock threads in the order of their ids. change begins with the thread's own row,
// and checks the condition again, because the thread was not locked when it met the condition.
func (db *DB) EachThread(ctx context.Context, change func(tx *Txn, thread int64), condition string, args ...any) error {
	threads, err := List(ctx, db, Self[int64], `SELECT id FROM threads WHERE `+condition, args...)
	if err != nil {
		return err
	}
	slices.Sort(threads)
	for batch := range slices.Chunk(threads, threadBatch) {
		if err := db.Change(ctx, "", func(tx *Txn) {
			for _, thread := range batch {
				change(tx, thread)
			}
		}); err != nil {
			return err
		}
	}
	return nil
}
