package storage

import (
	"context"
	"slices"
)

// threadBatch bounds the threads that one transaction locks.
const threadBatch = 100

// EachThread changes threads, a few in a transaction. All such transactions lock threads in the order
// of their ids. change begins with the thread's own row, and checks again what the caller has read of it, because the
// thread was not locked then.
func (db *DB) EachThread(ctx context.Context, threads []int64, change func(tx *Txn, thread int64)) error {
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
