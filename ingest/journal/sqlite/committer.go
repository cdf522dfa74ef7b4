package sqlite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"parley/ingest/journal/internal/queue"
	"parley/ingest/journal/storage"
)

// maxCallers bounds the calls that share one transaction, and with the bounds of an envelope and
// of a reply also its size.
const maxCallers = 256

// minPause and maxPause bound the committer's pause between two attempts while another
// program has the file locked.
const (
	minPause = time.Millisecond
	maxPause = 25 * time.Millisecond
)

// committer owns the writing connection, and with it all transactions.
type committer struct {
	*queue.Queue
	closing  <-chan struct{}
	connect  func(context.Context) (*conn, error)
	check    *checkpointer
	recorder storage.Recorder // nil: no recorder

	conn *conn // nil while no connection works
	// doubt says that the log may end in the unacknowledged commit record of a failed
	// COMMIT. The next transaction that writes overwrites it.
	doubt bool
	pages int // written to the log since the last account
}

func newCommitter(path string, o Options, check *checkpointer, closing <-chan struct{}) *committer {
	return &committer{
		Queue:    queue.New(),
		closing:  closing,
		check:    check,
		recorder: o.Recorder,
		// Each RETURNING fills a temporary table, which temp_store=MEMORY keeps from
		// being opened as a file. With secure_delete, no removed bytes stay in free parts of
		// the file; BenchmarkMessage shows no cost.
		connect: func(ctx context.Context) (*conn, error) {
			return connect(ctx, path, o.vfs, "busy_timeout=0", "synchronous=FULL", "foreign_keys=ON",
				"wal_autocheckpoint=0", "cache_size=-8192", "mmap_size=0", "temp_store=MEMORY", "secure_delete=ON")
		},
	}
}

// run serves the queue until quit is closed. No call may be running then.
func (c *committer) run(ctx context.Context, quit <-chan struct{}) {
	for first := c.Next(quit); first != nil; first = c.Next(quit) {
		c.together(ctx, first)
		c.account()
	}
}

// together commits first and the calls that wait behind it in one transaction. If that fails,
// and another attempt may succeed, each of them runs again, in its own transaction.
func (c *committer) together(ctx context.Context, first *queue.Call) {
	batch, err := c.transact(ctx, first, false)
	if err == nil || len(batch) == 1 && !storage.Unavailable(err) {
		for _, call := range batch {
			call.Answer(err)
		}
		return
	}
	doubted := errors.Is(err, storage.ErrUnclear) // the COMMIT may have left a record
	for _, call := range batch {
		call.Release()
	}
	for _, call := range batch {
		_, err := c.transact(ctx, call, true)
		if err != nil && doubted && c.doubt {
			err = unclear(err)
		}
		call.Answer(err) // without effect if it has its answer, or has left
	}
}

// transact runs a call and, unless it runs alone, those that wait behind it in one transaction,
// and commits it. It returns the calls that have a part in the transaction.
func (c *committer) transact(ctx context.Context, first *queue.Call, alone bool) (batch []*queue.Call, err error) {
	if !c.begin(ctx, first) {
		return nil, nil
	}
	begun := time.Now()
	batch, err = c.collect(first, alone, begun)
	if err == nil && len(batch) > 0 {
		err = c.commit(len(batch), begun)
	}
	if err != nil || len(batch) == 0 {
		c.rollback()
	}
	return batch, err
}

// collect runs the waiting calls, up to the first that makes the transaction impossible
// to commit. It returns the calls that have a part in the transaction.
func (c *committer) collect(first *queue.Call, alone bool, begun time.Time) (batch []*queue.Call, err error) {
	behind := func() *queue.Call {
		if alone {
			return nil
		}
		return c.Behind(len(batch), begun)
	}
	for call := first; call != nil; call = behind() {
		if !call.Take() {
			continue
		}
		t, err := c.call(call)
		if err != nil && !t.wrote && !alone {
			call.Answer(err)
			continue
		}
		batch = append(batch, call)
		if err != nil || len(batch) >= maxCallers {
			return batch, err
		}
	}
	return batch, nil
}

// call runs the function of a call in the open transaction. If it returns an error and
// t.wrote, the transaction must be rolled back.
func (c *committer) call(call *queue.Call) (t *tx, err error) {
	t = &tx{conn: c.conn}
	if err = call.Run(t); t.dead != nil {
		return t, t.dead
	}
	t.dead = errDone // a function may keep t, but cannot use it
	return t, err
}

// begin opens a transaction for a call. It waits for another program's write lock as long
// as the caller waits. If that fails, it answers the call and returns false.
func (c *committer) begin(ctx context.Context, call *queue.Call) bool {
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		if call.Gone() {
			return false
		}
		err := c.connected(ctx)
		if err == nil {
			if err = c.conn.run("BEGIN IMMEDIATE"); err == nil {
				return true
			}
		}
		if !isBusy(err) {
			c.disconnect()
			call.Answer(unavailable(fmt.Errorf("begin to write: %w", err)))
			return false
		}
		select {
		case <-time.After(pause):
		case <-c.closing:
			call.Answer(fmt.Errorf("begin to write: %w: %w", storage.ErrClosed, err))
			return false
		}
	}
}

// commit makes the transaction durable, which began at a time.
func (c *committer) commit(calls int, begun time.Time) error {
	ready := time.Now()
	if err := c.conn.run("COMMIT"); err != nil {
		err = unavailable(fmt.Errorf("commit: %w", err))
		if leavesNothing(err) {
			return err
		}
		c.doubt = true
		return unclear(err)
	}
	pages := c.conn.written()
	if c.recorder != nil {
		c.recorder.Committed(storage.Commit{Calls: calls, Pages: pages, Took: time.Since(ready), Held: time.Since(begun)})
	}
	c.pages += pages
	c.doubt = c.doubt && pages == 0
	return nil
}

// account reports the growth of the log to the checkpointer. The callers have their
// answers already.
func (c *committer) account() {
	if c.conn != nil && c.pages > 0 {
		c.check.wrote(c.conn, c.pages)
		c.pages = 0
	}
}

// rollback ensures that no transaction is open.
func (c *committer) rollback() {
	if !c.conn.clean() {
		c.disconnect()
		return
	}
	c.conn.written() // a rollback adds nothing to the log
}

// connected opens the connection if there is none.
func (c *committer) connected(ctx context.Context) (err error) {
	if c.conn == nil {
		c.conn, err = c.connect(ctx)
	}
	return err
}

// disconnect closes a connection whose state is unknown.
func (c *committer) disconnect() {
	if c.conn != nil {
		_ = c.conn.close() // a broken connection may fail to close
		c.conn = nil
	}
}

// close moves the rest of the log into the database. SQLite does this too when its last
// connection closes, but reports no failure.
func (c *committer) close() error {
	if c.conn == nil {
		return nil
	}
	busy, err := checkpoint(c.conn, "TRUNCATE")
	if busy {
		err = errors.Join(err, errors.New("another program is using the journal"))
	}
	return errors.Join(err, c.conn.close())
}
