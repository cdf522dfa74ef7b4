package journal

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"parley/ingest/event"
)

// Freshness is what a reply's agent knew of its thread, in thread_seq.
type Freshness struct {
	BaseSeq, LatestSeenSeq, ServerSeq int64
}

// Listed is a message in a list of its thread.
type Listed struct {
	Message
	// Freshness is set for replies.
	Freshness *Freshness
	// RunID is set for replies.
	RunID string
}

// Messages returns a thread's messages after a thread_seq, in order, deleted
// ones as tombstones. It fails with ErrNotFound where there is no such thread.
func (j *Journal) Messages(ctx context.Context, key event.ThreadKey, after int64, limit int) ([]Listed, error) {
	var out []Listed
	err := j.engine.Read(ctx, func(tx Tx) error {
		out = nil
		var thread int64
		if found, err := tx.Row([]any{&thread}, `SELECT id FROM threads WHERE key = ?`, string(key)); err != nil || !found {
			if err == nil {
				err = ErrNotFound
			}
			return err
		}
		messages, err := manyMessages(tx, `thread = ? AND seq > ? ORDER BY seq LIMIT CAST(? AS BIGINT)`, thread, after, int64(limit))
		if err != nil {
			return err
		}
		for _, m := range messages {
			listed := Listed{Message: m}
			if m.Author == ByAgent {
				if err := listed.loadReply(tx); err != nil {
					return err
				}
			}
			out = append(out, listed)
		}
		return nil
	})
	return out, err
}

func (l *Listed) loadReply(tx Tx) error {
	l.Freshness = &Freshness{}
	_, err := tx.Row([]any{&l.Freshness.BaseSeq, &l.Freshness.LatestSeenSeq, &l.Freshness.ServerSeq, &l.RunID}, `
		SELECT coalesce(m.base_seq, 0), coalesce(m.latest_seen_seq, 0), coalesce(m.server_seq, 0), coalesce(r.id, '')
		FROM messages m LEFT JOIN runs r ON r.row = m.run WHERE m.id = ?`, l.Row)
	return err
}

// Backlog is what is still to be done, or will not be.
type Backlog struct {
	Pending     int64 // envelopes
	DeadLetters int64
}

// Backlog counts pending envelopes and dead letters. Its cost grows with their
// number: it is for a metric that is asked for now and then.
func (j *Journal) Backlog(ctx context.Context) (b Backlog, err error) {
	err = j.engine.Read(ctx, func(tx Tx) error {
		if _, err := tx.Row([]any{&b.Pending}, `SELECT (SELECT count(*) FROM envelopes WHERE state = 'pending' AND thread IS NOT NULL)
			+ (SELECT count(*) FROM envelopes WHERE state = 'pending' AND thread IS NULL)`); err != nil {
			return err
		}
		_, err := tx.Row([]any{&b.DeadLetters}, `SELECT count(*) FROM envelopes WHERE state = 'dead'`)
		return err
	})
	return b, err
}

// Probe says whether the store can take a commit now. It waits for nobody: the row
// that it makes has a name of its own, and is gone when it ends.
func (j *Journal) Probe(ctx context.Context) error {
	name := "probe/" + uuid.NewString()
	return j.engine.Write(ctx, func(tx Tx) error {
		if err := tx.Later(nil, nil, `INSERT INTO cursors (workspace, channel, position) VALUES ('', ?, '')`, name); err != nil {
			return err
		}
		return tx.Later(nil, nil, `DELETE FROM cursors WHERE workspace = '' AND channel = ?`, name)
	})
}

// SetAttachment records what became of the copy of a file, and what is known of
// it now, unless the file is gone since.
func (j *Journal) SetAttachment(ctx context.Context, a Attachment, sha256 string) error {
	return j.engine.Write(ctx, func(tx Tx) error {
		_, err := tx.Exec(`UPDATE attachments SET state = ?, bucket = ?, path = ?, sha256 = ?, name = ?, size = ?, mime_type = ?
			WHERE id = ? AND state = ?`,
			string(a.State), a.Bucket, a.Path, sha256, a.Name, a.Size, a.MimeType, a.Row, string(AttachmentPending))
		return err
	})
}

// AssignOrphans gives the due turns of agents that are not among these to an heir,
// so that no thread waits for somebody who will not come. Where several nodes share
// the store, another one may know an agent that this one does not: a turn is an
// orphan there once it has been due for so long and nobody has its thread.
func (j *Journal) AssignOrphans(ctx context.Context, agents []string, heir string, overdue time.Duration) error {
	orphan, args := `turn_at IS NOT NULL AND agent = ?`, []any{}
	if j.lease > 0 {
		now := j.now()
		orphan += ` AND turn_at <= ? AND (owner = '' OR lease_until <= ?)`
		args = append(args, millis(now.Add(-overdue)), millis(now))
	}
	waiting, err := j.awaitedAgents(ctx)
	if err != nil {
		return err
	}
	for _, agent := range waiting {
		if slices.Contains(agents, agent) {
			continue
		}
		is := append([]any{agent}, args...)
		threads, err := j.threads(ctx, orphan, is...)
		if err != nil {
			return err
		}
		if err := j.eachThread(ctx, threads, func(tx Tx, thread int64) error {
			return tx.Later(nil, nil, `UPDATE threads SET agent = ? WHERE id = ? AND `+orphan, append([]any{heir, thread}, is...)...)
		}); err != nil {
			return err
		}
	}
	return nil
}

// awaitedAgents are those that turns wait for.
func (j *Journal) awaitedAgents(ctx context.Context) (agents []string, err error) {
	err = j.engine.Read(single(ctx), func(tx Tx) error {
		agents = nil
		return tx.Rows(func(scan func(...any) error) error {
			var agent string
			err := scan(&agent)
			agents = append(agents, agent)
			return err
		}, `SELECT DISTINCT agent FROM threads WHERE turn_at IS NOT NULL`)
	})
	return agents, err
}
