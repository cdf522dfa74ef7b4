package sqlite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"parley/ingest/journal"
	"parley/ingest/journal/internal/queue"
)

// The bounds of one transaction.
const (
	maxCallers = 256
	maxBytes   = 8 << 20
)

// A transaction takes further work that nobody outside waits for only so long,
// and at least so much of it: what is urgent meanwhile waits for its end.
const (
	ordinaryTime = 2 * time.Millisecond
	ordinaryMin  = 8
)

// How long the committer waits for a file that another program has locked
// before it asks again.
const (
	minPause = time.Millisecond
	maxPause = 25 * time.Millisecond
)

// committer owns the connection that writes, and with it all transactions.
type committer struct {
	*queue.Queue
	closing  <-chan struct{}
	connect  func(context.Context) (*conn, error)
	check    *checkpointer
	recorder Recorder

	conn *conn // nil while there is none that works
	// doubt says that the log may end in a commit record that nobody was told
	// of, left by a COMMIT that failed. The next one that writes overwrites it.
	doubt bool
	pages int // written to the log and not yet accounted for
}

func newCommitter(path string, o options, check *checkpointer, closing <-chan struct{}) *committer {
	return &committer{
		Queue:    queue.New(),
		closing:  closing,
		check:    check,
		recorder: o.recorder,
		connect: func(ctx context.Context) (*conn, error) {
			return connect(ctx, path, o.vfs, "busy_timeout=0", "synchronous=FULL", "foreign_keys=ON",
				"wal_autocheckpoint=0", "cache_size=-8192", "mmap_size=0")
		},
	}
}

// run serves the queue until quit is closed; no call may be under way then.
func (c *committer) run(ctx context.Context, quit <-chan struct{}) {
	for first := c.Next(quit); first != nil; first = c.Next(quit) {
		c.together(ctx, &request{Call: first})
		c.account()
	}
}

// together commits first and whoever is waiting behind it in one transaction.
func (c *committer) together(ctx context.Context, first *request) {
	if !c.begin(ctx, first) {
		return
	}
	batch, verdict := c.collect(first)
	var err error
	if verdict == fits && len(batch) > 0 {
		if err = c.commit(len(batch)); err == nil {
			answer(batch)
			return
		}
	}
	c.rollback()
	if verdict == spoils && len(batch) == 1 {
		answer(batch) // it was alone already
		return
	}
	c.apart(ctx, batch, errors.Is(err, journal.ErrUnclear))
}

// collect runs the functions of the requests that are waiting, up to the first
// that does not fit.
func (c *committer) collect(first *request) ([]*request, verdict) {
	var batch []*request
	bytes, begun := 0, time.Now()
	for r := first; r != nil; r = c.next(len(batch), bytes, begun) {
		if !r.Take() {
			continue
		}
		batch = append(batch, r)
		t := &tx{conn: c.conn}
		if verdict := r.run(t); verdict != fits {
			return batch, verdict
		}
		bytes += t.bytes
	}
	return batch, fits
}

// answer tells every caller what its function returned.
func answer(batch []*request) {
	for _, r := range batch {
		r.Answer(r.err)
	}
}

// next returns the next waiting request, what is urgent first, or nil where the
// transaction is full or nobody waits.
func (c *committer) next(callers, bytes int, begun time.Time) *request {
	if callers >= maxCallers || bytes >= maxBytes {
		return nil
	}
	call := c.Urgent()
	if call == nil && (callers < ordinaryMin || time.Since(begun) <= ordinaryTime) {
		call = c.Ordinary()
	}
	if call == nil {
		return nil
	}
	return &request{Call: call}
}

// apart runs the requests of a transaction that was rolled back again, each in
// one of its own. doubted says that its COMMIT may have left a record.
func (c *committer) apart(ctx context.Context, batch []*request, doubted bool) {
	for _, r := range batch {
		r.Release()
	}
	for _, r := range batch {
		if !c.begin(ctx, r) {
			continue
		}
		if !r.Take() {
			c.rollback()
			continue
		}
		err := c.alone(r)
		if err != nil && doubted && c.doubt {
			err = unclear(err)
		}
		r.Answer(err)
	}
}

// alone runs and commits one request in the transaction that is open.
func (c *committer) alone(r *request) error {
	if r.run(&tx{conn: c.conn}) != fits || r.err != nil {
		c.rollback()
		return r.err
	}
	err := c.commit(1)
	if err != nil {
		c.rollback()
	}
	return err
}

// begin opens a transaction for r. Another program that holds the write lock is
// waited for as long as r's caller waits. Where there can be none, it answers r
// and returns false.
func (c *committer) begin(ctx context.Context, r *request) bool {
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		if r.Gone() {
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
			r.Answer(unavailable(fmt.Errorf("begin to write: %w", err)))
			return false
		}
		select {
		case <-time.After(pause):
		case <-c.closing:
			r.Answer(fmt.Errorf("begin to write: %w: %w", journal.ErrClosed, err))
			return false
		}
	}
}

// commit makes the transaction durable.
func (c *committer) commit(callers int) error {
	begun := time.Now()
	if err := c.conn.run("COMMIT"); err != nil {
		err = unavailable(fmt.Errorf("commit: %w", err))
		if leavesNothing(err) {
			return err
		}
		c.doubt = true
		return unclear(err)
	}
	c.recorder.Committed(callers, time.Since(begun))
	pages := c.conn.written()
	c.pages += pages
	c.doubt = c.doubt && pages == 0
	return nil
}

// account tells the checkpointer how the log has grown; the callers have their
// answers by then.
func (c *committer) account() {
	if c.conn != nil && c.pages > 0 {
		c.check.wrote(c.conn, c.pages)
		c.pages = 0
	}
}

// rollback makes sure that no transaction is open.
func (c *committer) rollback() {
	if !c.conn.clean() {
		c.disconnect()
		return
	}
	c.conn.written() // what was undone is no growth
}

// connected opens the connection if there is none.
func (c *committer) connected(ctx context.Context) (err error) {
	if c.conn == nil {
		c.conn, err = c.connect(ctx)
	}
	return err
}

// disconnect gives a connection up whose state is not known.
func (c *committer) disconnect() {
	if c.conn != nil {
		_ = c.conn.close() // a broken one may well fail to
		c.conn = nil
	}
}

// close moves what is left of the log into the database. The last connection
// that closes does this as well, but tells nobody when it fails.
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
