package rig

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"sync"
	"time"

	"parley/cmd/parley-bench/internal/figure"
	"parley/cmd/parley-bench/internal/ledger"
	"parley/ingest/wake"
)

// Nodes are the processes of one trial and the store that they share.
type Nodes struct {
	All      []*Child
	Database *Database      // nil for SQLite
	Store    *sql.DB        // a connection to the store beside the daemons
	Deaths   []ledger.Death // by crashOne
}

// NewNodes makes a store and the bench's number of processes. newChild gets the name
// that identifies the process at the fake API.
func (b *Bench) NewNodes(ctx context.Context, name string, newChild func(name string, d *Database) (*Child, error)) (n *Nodes, err error) {
	n = &Nodes{}
	if b.Postgres != "" {
		if n.Database, err = b.newDatabase(ctx, b.Postgres); err != nil {
			return nil, err
		}
	}
	for i := range b.Daemons {
		c, err := newChild(fmt.Sprintf("%s-%d", name, i), n.Database)
		if err != nil {
			return nil, err
		}
		b.OnClose(c.Kill)
		n.All = append(n.All, c)
	}
	if n.Store, err = n.openStore(); err != nil {
		return nil, err
	}
	// An idle connection would keep the store's WAL index valid after a kill -9. So the
	// daemon would not have to recover the WAL.
	n.Store.SetMaxIdleConns(-1)
	b.OnClose(n.Store.Close)
	return n, nil
}

// StartNodes is newNodes, and returns when the processes are ready.
func (b *Bench) StartNodes(ctx context.Context, name string, newChild func(name string, d *Database) (*Child, error)) (*Nodes, error) {
	n, err := b.NewNodes(ctx, name, newChild)
	if err != nil {
		return nil, err
	}
	return n, n.Start(ctx)
}

// Start starts all nodes at the same time, and returns when they are ready.
func (n *Nodes) Start(ctx context.Context) error {
	return n.each(func(c *Child) error {
		_, err := c.Start(ctx)
		return err
	})
}

// Stop sends SIGTERM to all nodes, and returns when they have ended.
func (n *Nodes) Stop() error { return n.each((*Child).Stop) }

// Alive returns an error if a node has ended by itself.
func (n *Nodes) Alive() error { return n.each((*Child).Alive) }

// each calls do for all nodes concurrently.
func (n *Nodes) each(do func(*Child) error) error {
	errs := make([]error, len(n.All))
	var group sync.WaitGroup
	for i, c := range n.All {
		group.Go(func() { errs[i] = do(c) })
	}
	group.Wait()
	return errors.Join(errs...)
}

// LockOne locks a random node that is not locked. If all are locked, it waits for one.
func (n *Nodes) LockOne(random *rand.Rand) *Child {
	order := random.Perm(len(n.All))
	for _, i := range order {
		if n.All[i].TryLock() {
			return n.All[i]
		}
	}
	c := n.All[order[0]]
	c.Lock()
	return c
}

// CrashOne kills a random node, notes its death, and starts it again.
func (n *Nodes) CrashOne(ctx context.Context, random *rand.Rand) error {
	c := n.LockOne(random)
	defer c.Unlock()
	begun := time.Now()
	if err := c.Kill(); err != nil {
		return err
	}
	n.Deaths = append(n.Deaths, ledger.Death{From: begun, To: time.Now()})
	_, err := c.Start(ctx)
	return err
}

// Processes returns the sums of the nodes' CPU times since their start and of their memory.
// Shared pages count for each node.
func (n *Nodes) Processes() (sum figure.Process) {
	for _, c := range n.All {
		one := figure.ReadProcess(c.PID())
		sum.CPU += one.CPU
		sum.Written += one.Written
		sum.Memory = figure.Memory{Now: sum.Memory.Now + one.Memory.Now, Peak: sum.Memory.Peak + one.Memory.Peak}
	}
	return sum
}

// Memory is the sum of the nodes' memory, as in Processes.
func (n *Nodes) Memory() figure.Memory { return n.Processes().Memory }

// Growth returns the most that the nodes' memory grows until ctx ends, in bytes.
func (n *Nodes) Growth(ctx context.Context) (most int64) {
	before := n.Memory().Now
	for wake.After(ctx, 50*time.Millisecond) {
		most = max(most, n.Memory().Now-before)
	}
	return most
}

// LogTail returns the end of each node's log.
func (n *Nodes) LogTail() string {
	var text strings.Builder
	for _, c := range n.All {
		fmt.Fprintf(&text, "%s:\n%s\n", c.Name(), c.logTail())
	}
	return text.String()
}

// Backlog counts the unfinished work in the daemons' store.
type Backlog struct{ Envelopes, turns, runs, deliveries, Gaps int64 }

// String lists the counts.
func (b Backlog) String() string {
	return fmt.Sprintf("%d envelopes, %d messages without a turn, %d runs, %d deliveries, %d gaps", b.Envelopes, b.turns, b.runs, b.deliveries, b.Gaps)
}

// Backlog counts the unfinished work now.
func (n *Nodes) Backlog(ctx context.Context) (b Backlog, err error) {
	err = n.Store.QueryRowContext(ctx, `SELECT
		(SELECT count(*) FROM envelopes WHERE state = 'pending'),
		(SELECT count(*) FROM messages WHERE trigger = 'run' AND run IS NULL),
		(SELECT count(*) FROM threads WHERE run_id IS NOT NULL),
		(SELECT count(*) FROM deliveries WHERE state IN ('pending', 'sending')),
		(SELECT count(*) FROM gaps)`).
		Scan(&b.Envelopes, &b.turns, &b.runs, &b.deliveries, &b.Gaps)
	if err != nil {
		return b, fmt.Errorf("read the daemons' backlog: %w", err)
	}
	return b, nil
}

// Settle waits until the daemons have no unfinished work and missing describes nothing; missing
// may change that work. settle returns what is left if the time limit passes or a daemon ends;
// empty for nothing.
func (n *Nodes) Settle(ctx context.Context, within time.Duration, missing func(work *Backlog) string) (left string) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	left = "the store could not be read"
	for {
		if work, err := n.Backlog(ctx); err == nil {
			more := missing(&work)
			if work == (Backlog{}) && more == "" {
				return ""
			}
			left = fmt.Sprintf("%v, %s", work, more)
		}
		if n.Alive() != nil || !wake.After(ctx, 50*time.Millisecond) {
			return left
		}
	}
}

// openStore opens the daemons' store. The connection is made by the first statement.
func (n *Nodes) openStore() (*sql.DB, error) {
	if n.Database != nil {
		return openDatabase(n.Database.URL)
	}
	path := (&url.URL{Path: n.All[0].StorePath()}).EscapedPath()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)")
	if err != nil {
		return nil, fmt.Errorf("open the daemon's store: %w", err)
	}
	return db, nil
}
