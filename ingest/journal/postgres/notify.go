package postgres

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"parley/ingest/event"
	"parley/ingest/wake"
)

const (
	// gather is the time that messages wait for others. NOTIFY locks the whole database
	// during its commit, so the engine sends many messages with one commit.
	gather = 2 * time.Millisecond
	// maxWords bounds the bytes of one message, maxWaiting the number of waiting
	// messages. PostgreSQL's limit is 8000 bytes.
	// https://www.postgresql.org/docs/current/sql-notify.html
	maxWords, maxWaiting = 1024, 4096
	// maxRelisten bounds the pause before a listener connects again.
	maxRelisten = time.Second
	// probeListener is the time of silence after which a listener checks its connection.
	probeListener = 15 * time.Second
)

// channel returns the name of a node's channel. For an empty name, it returns the channel
// of all nodes. The name of a node has at most 50 bytes, so that the name of the channel has at
// most 63: NOTIFY refuses a longer one, and LISTEN truncates it.
func channel(node string) string {
	if node == "" {
		return "parley"
	}
	return "parley " + event.Text(node)
}

// notice is a message for one node, or for all if node is empty.
type notice struct{ node, words string }

// Notify implements storage.Notifier.
func (e *Engine) Notify(node, words string) {
	if len(words) > maxWords {
		return // the other node polls
	}
	select {
	case e.notices <- notice{node, event.Text(words)}:
	default:
	}
}

// sendNotices sends the waiting messages, until the engine is closed. The server sends equal
// messages of one statement once.
func (e *Engine) sendNotices(ctx context.Context) {
	for {
		select {
		case <-e.quit:
			return
		case first := <-e.notices:
			<-time.After(gather)
			channels, words := []string{channel(first.node)}, []string{first.words}
			for range len(e.notices) {
				n := <-e.notices
				channels, words = append(channels, channel(n.node)), append(words, n.words)
			}
			sending, cancel := context.WithTimeout(ctx, maxRelisten)
			if _, err := e.pool.Exec(sending, `SELECT pg_notify(channel, words) FROM unnest(CAST($1 AS TEXT[]), CAST($2 AS TEXT[])) AS n (channel, words)`,
				channels, words); err != nil {
				e.log.Debug("notification of other nodes fails; they poll", "err", err)
			}
			cancel()
		}
	}
}

// Listen implements storage.Notifier.
func (e *Engine) Listen(ctx context.Context, node string, heard func(words string), missed func()) {
	level := slog.LevelWarn
	for wait := betweenTries; ctx.Err() == nil; wait = min(2*wait, maxRelisten) {
		err := e.hear(ctx, node, heard, func() {
			wait, level = betweenTries, slog.LevelWarn
			missed()
		})
		if ctx.Err() != nil {
			return
		}
		e.log.Log(ctx, level, "listening connection lost; this node polls until it is back", "err", err)
		level = slog.LevelDebug // one warning for each break
		wake.After(ctx, wait)
	}
}

// hear listens on its own connection until the connection breaks or ctx ends. It calls
// listening after LISTEN has taken effect: earlier messages are lost.
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
	listening()
	for ctx.Err() == nil {
		waiting, cancel := context.WithTimeout(ctx, probeListener)
		message, err := c.WaitForNotification(waiting)
		cancel()
		if err == nil {
			heard(message.Payload)
			continue
		}
		if waiting.Err() != nil {
			err = probe(ctx, c)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// probe checks that a silent connection still works.
func probe(ctx context.Context, c *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, maxRelisten)
	defer cancel()
	return c.Ping(ctx)
}
