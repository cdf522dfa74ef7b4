package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// everybody is the channel of what is sent to all nodes; what is sent to one goes
// to a channel with its name.
const everybody = "parley"

func channel(node string) string {
	if node == "" {
		return everybody
	}
	return everybody + " " + storable(node)
}

const (
	// gather is how long messages wait for others to be sent with: NOTIFY takes a
	// lock on the whole database while it commits, so that one for many is cheap
	// and one for each is not.
	gather = 2 * time.Millisecond
	// maxNotice is the most that one NOTIFY carries; PostgreSQL's own limit is 8000.
	// https://www.postgresql.org/docs/current/sql-notify.html
	maxNotice = 7900
	// maxChannel is the longest name that a channel may have; PostgreSQL refuses a
	// longer one when it is told, and cuts it off when it listens.
	maxChannel = 63
	// maxWords is the longest single message, maxRings how many may wait.
	maxWords, maxRings = 1024, 4096
	// maxRelisten bounds the pause before a listener connects again.
	maxRelisten = time.Second
	// probeListener is how long a listener hears nothing before it asks whether its
	// connection is still there.
	probeListener = 15 * time.Second
)

// rings are the messages that wait to be sent, each once.
type rings struct {
	mu      *sync.Mutex
	waiting map[ring]bool
	changed chan struct{} // holds a value while there are some
}

type ring struct{ node, words string }

func newRings() rings {
	return rings{mu: &sync.Mutex{}, waiting: map[ring]bool{}, changed: make(chan struct{}, 1)}
}

// Ring implements journal.Bell.
func (e *Engine) Ring(node, words string) {
	if len(words) > maxWords || strings.Contains(words, "\n") || len(channel(node)) > maxChannel {
		return // the poll beneath finds it
	}
	e.rings.mu.Lock()
	defer e.rings.mu.Unlock()
	if len(e.rings.waiting) >= maxRings {
		return
	}
	e.rings.waiting[ring{node, storable(words)}] = true
	select {
	case e.rings.changed <- struct{}{}:
	default:
	}
}

// ringer sends what waits, until the engine is closed.
func (e *Engine) ringer(ctx context.Context) {
	for {
		select {
		case <-e.quit:
			return
		case <-e.rings.changed:
		}
		select {
		case <-e.quit:
			return
		case <-time.After(gather):
		}
		notices := e.rings.take()
		if notices.Len() == 0 {
			continue // they went with those before
		}
		sending, cancel := context.WithTimeout(ctx, maxRelisten)
		if err := e.pool.SendBatch(sending, notices).Close(); err != nil {
			e.log.Debug("other nodes were not told of work; they look by themselves", "err", err)
		}
		cancel()
	}
}

// take makes notices of all that waits, as few as will do.
func (r *rings) take() *pgx.Batch {
	r.mu.Lock()
	defer r.mu.Unlock()
	texts := map[string]string{}
	batch := &pgx.Batch{}
	notify := func(node string) {
		batch.Queue(`SELECT pg_notify($1, $2)`, channel(node), texts[node])
		delete(texts, node)
	}
	for ring := range r.waiting {
		if text := texts[ring.node]; len(text)+len(ring.words) >= maxNotice {
			notify(ring.node)
		}
		texts[ring.node] += ring.words + "\n"
	}
	for node := range texts {
		notify(node)
	}
	clear(r.waiting)
	return batch
}

// Listen implements journal.Bell.
func (e *Engine) Listen(ctx context.Context, node string, heard func(words string), missed func()) error {
	if len(channel(node)) > maxChannel {
		return fmt.Errorf("listen: the node's name %q is too long", node)
	}
	level := slog.LevelWarn
	for wait := betweenTries; ctx.Err() == nil; wait = min(2*wait, maxRelisten) {
		err := e.hear(ctx, node, heard, func() {
			wait, level = betweenTries, slog.LevelWarn
			missed()
		})
		if ctx.Err() != nil {
			return nil
		}
		e.log.Log(ctx, level, "the connection that hears of other nodes' work is lost; until it is back, work is found by looking", "err", err)
		level = slog.LevelDebug // once for each break
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
	return nil
}

// hear listens on a connection of its own until that ends.
func (e *Engine) hear(ctx context.Context, node string, heard func(string), listening func()) (err error) {
	c, err := pgx.ConnectConfig(ctx, e.listen)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close(context.WithoutCancel(ctx))) }()
	for _, name := range []string{channel(""), channel(node)} {
		if _, err := c.Exec(ctx, "LISTEN "+pgx.Identifier{name}.Sanitize()); err != nil {
			return err
		}
	}
	listening() // what was committed before LISTEN took effect was not heard
	for {
		waiting, cancel := context.WithTimeout(ctx, probeListener)
		notice, err := c.WaitForNotification(waiting)
		cancel()
		switch {
		case err == nil:
			for words := range strings.SplitSeq(strings.TrimSuffix(notice.Payload, "\n"), "\n") {
				heard(words)
			}
		case ctx.Err() != nil:
			return nil
		case waiting.Err() != nil:
			if err := e.probe(ctx, c); err != nil {
				return err
			}
		default:
			return err
		}
	}
}

// probe asks whether a connection that was silent is still there.
func (e *Engine) probe(ctx context.Context, c *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, maxRelisten)
	defer cancel()
	return c.Ping(ctx)
}
