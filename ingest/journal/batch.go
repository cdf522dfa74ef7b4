package journal

import (
	"context"
	"slices"
)

// threadBatch bounds the threads that one transaction locks.
const threadBatch = 100

// threads are the rows of the threads that a condition holds for, in no order. They
// are not locked: who changes them looks again.
func (j *Journal) threads(ctx context.Context, condition string, args ...any) (threads []int64, err error) {
	err = j.engine.Read(single(ctx), func(tx Tx) error {
		threads = nil
		return tx.Rows(func(scan func(...any) error) error {
			var id int64
			err := scan(&id)
			threads = append(threads, id)
			return err
		}, `SELECT id FROM threads WHERE `+condition, args...)
	})
	return threads, err
}

// eachThread changes threads, a few in a transaction, all of which lock them in
// one order, that of their ids. change begins with the thread's own row.
func (j *Journal) eachThread(ctx context.Context, threads []int64, change func(tx Tx, thread int64) error) error {
	slices.Sort(threads)
	for batch := range slices.Chunk(threads, threadBatch) {
		if err := j.engine.Write(ctx, func(tx Tx) error {
			for _, thread := range batch {
				if err := change(tx, thread); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}
