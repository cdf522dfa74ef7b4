package journal

import (
	"context"
	"slices"
)

// threadBatch bounds the threads that one transaction locks.
const threadBatch = 100

// threads returns the ids of the threads that meet a condition, in no order. It does not
// lock them: a caller that changes them must check the condition again.
func (j *Journal) threads(ctx context.Context, condition string, args ...any) ([]int64, error) {
	return list(ctx, j, self[int64], `SELECT id FROM threads WHERE `+condition, args...)
}

// eachThread changes threads, a few in a transaction. All such transactions lock threads
// in the order of their ids. change begins with the thread's own row.
func (j *Journal) eachThread(ctx context.Context, threads []int64, change func(tx *txn, thread int64)) error {
	slices.Sort(threads)
	for batch := range slices.Chunk(threads, threadBatch) {
		if err := j.change(ctx, "", func(tx *txn) {
			for _, thread := range batch {
				change(tx, thread)
			}
		}); err != nil {
			return err
		}
	}
	return nil
}
