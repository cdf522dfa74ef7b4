package journal

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
)

// Backlog is the number of envelopes that are pending or dead letters.
type Backlog struct {
	Pending     int64 // envelopes
	DeadLetters int64
}

// Backlog counts pending envelopes and dead letters. Its cost grows with their number: it
// suits a metric that is read rarely.
func (j *Journal) Backlog(ctx context.Context) (b Backlog, err error) {
	_, err = j.row(ctx, []any{&b.Pending, &b.DeadLetters}, `SELECT (SELECT count(*) FROM envelopes WHERE state = 'pending' AND thread IS NOT NULL)
		+ (SELECT count(*) FROM envelopes WHERE state = 'pending' AND thread IS NULL), (SELECT count(*) FROM envelopes WHERE state = 'dead')`)
	return b, err
}

// Quiet reports whether no envelope is pending in a thread, no turn is due by a time and
// no run is unfinished. A replay waits for that between two of its lines.
func (j *Journal) Quiet(ctx context.Context, turnsBy time.Time) (bool, error) {
	return read(ctx, j, func(tx *txn) bool {
		return !tx.has(`SELECT 1 FROM threads WHERE intake_at IS NOT NULL LIMIT 1`) &&
			!tx.has(`SELECT 1 FROM threads WHERE turn_at IS NOT NULL AND (turn_at <= $1 OR run_id IS NOT NULL) LIMIT 1`, millis(turnsBy))
	})
}

// Probe reports whether the store can take a commit now. It waits for no lock, because
// the row that it makes has a name of its own. The row is gone when Probe ends.
func (j *Journal) Probe(ctx context.Context) error {
	name := "probe/" + uuid.NewString()
	return j.change(ctx, "", func(tx *txn) {
		tx.do(`INSERT INTO retention_progress (task, position) VALUES ($1, 0)`, name)
		tx.do(`DELETE FROM retention_progress WHERE task = $1`, name)
	})
}

// SetAttachment records the state of a file's copy and the known facts about the file. If
// the file's message was deleted meanwhile, the copy is due for removal. Another node may
// delete the message at the same time and not see the copy. So the copy is checked again
// later.
func (j *Journal) SetAttachment(ctx context.Context, a Attachment, sha256 string) error {
	recorded, err := write(ctx, j, WriteOptions{}, func(tx *txn) int64 {
		if a.Path != "" {
			tx.checkCopy(a.Bucket, a.Path, j.now().Add(checkNew))
		}
		return tx.exec(`UPDATE attachments SET state = $3, bucket = $4, path = $5, sha256 = $6, name = $7, size = $8, mime_type = $9
			WHERE id = $1 AND external_id = $2 AND state = 'pending'`,
			a.Row, a.ID, string(a.State), a.Bucket, a.Path, sha256, a.Name, a.Size, a.MimeType)
	})
	if err == nil && recorded == 0 && a.Path != "" {
		err = j.CheckCopy(ctx, a.Bucket, a.Path, 0)
		j.copies.Set()
	}
	return err
}

// AssignOrphans gives the due turns of agents outside the list to an heir, so that no
// thread waits for a removed agent. On a shared store, another node may know an agent
// that this one does not: there, a turn is an orphan after it has been overdue for the
// given time and no node has claimed its thread. A run that waits for its agent's later answer
// becomes due, because the removed agent cannot give that answer.
func (j *Journal) AssignOrphans(ctx context.Context, agents []string, heir string, overdue time.Duration) error {
	const orphan = `turn_at IS NOT NULL AND agent = $1 AND turn_at <= $2 AND (owner = '' OR lease_until <= $3)`
	now := millis(j.now())
	due, ended := LeasesEnded(j.now().Add(-overdue), j.lease), LeasesEnded(j.now(), j.lease) // no bounds in a store for one process
	waiting, err := list(ctx, j, self[string], `SELECT DISTINCT agent FROM threads WHERE turn_at IS NOT NULL`)
	if err != nil {
		return err
	}
	for _, agent := range waiting {
		if slices.Contains(agents, agent) {
			continue
		}
		if err := j.eachThread(ctx, func(tx *txn, thread int64) {
			if tx.exec(`UPDATE threads SET agent = $4, turn_at = CASE WHEN run_taken = 1 AND turn_at > $6 THEN $6 ELSE turn_at END,
				run_not_before = CASE WHEN run_taken = 1 THEN 0 ELSE run_not_before END, run_taken = 0
				WHERE id = $5 AND `+orphan, agent, due, ended, heir, thread, now) > 0 {
				tx.do(`UPDATE messages SET agent = $3 WHERE `+forAgent, thread, agent, heir)
			}
		}, orphan, agent, due, ended); err != nil {
			return err
		}
	}
	return nil
}
