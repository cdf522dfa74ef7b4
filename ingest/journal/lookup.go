package journal

import (
	"context"
	"time"
)

// ThreadChannel returns the platform's id of the channel that a thread is in;
// empty where no payload has told it.
func (j *Journal) ThreadChannel(ctx context.Context, thread int64) (channel string, err error) {
	err = j.engine.Read(single(ctx), func(tx Tx) error {
		_, err := tx.Row([]any{&channel}, `SELECT channel FROM threads WHERE id = ?`, thread)
		return err
	})
	return channel, err
}

// StoredMetadata returns the metadata of the message with an external id, as it
// stands now; nil where there is none.
func (j *Journal) StoredMetadata(ctx context.Context, workspace, externalID string) (metadata []byte, err error) {
	err = j.engine.Read(single(ctx), func(tx Tx) error {
		_, err := tx.Row([]any{&metadata}, `SELECT metadata FROM messages WHERE workspace = ? AND external_id = ?`, workspace, externalID)
		return err
	})
	return metadata, err
}

// ReplyIDs returns, for those platform ids that are posts of a reply of ours,
// the external id of that reply.
func (j *Journal) ReplyIDs(ctx context.Context, workspace string, platformIDs []string) (map[string]string, error) {
	var ids map[string]string
	err := j.engine.Read(ctx, func(tx Tx) error {
		ids = map[string]string{}
		for _, platformID := range platformIDs {
			var id string
			found, err := tx.Row([]any{&id}, `SELECT m.external_id FROM deliveries d JOIN messages m ON m.run = d.run AND m.author = 'agent'
				WHERE d.workspace = ? AND d.platform_id = ?`, workspace, platformID)
			if err != nil {
				return err
			}
			if found {
				ids[platformID] = id
			}
		}
		return nil
	})
	return ids, err
}

// Withdrawn says whether every message that a run answers has been deleted.
func (j *Journal) Withdrawn(ctx context.Context, run *Run) (withdrawn bool, err error) {
	err = j.engine.Read(single(ctx), func(tx Tx) error {
		var one int64
		left, err := tx.Row([]any{&one}, `SELECT 1 FROM messages WHERE run = ? AND author <> 'agent' AND deleted_at = 0 LIMIT 1`, run.Row)
		withdrawn = !left
		return err
	})
	return withdrawn, err
}

// PutOffRun leaves a run that was taken up too early until its time; that counts
// neither as a failure nor as a claim. An interruptible one is given up instead
// where a newer message waits, so that the next turn has both.
func (j *Journal) PutOffRun(ctx context.Context, lease *Lease, run *Run, until time.Time, interruptible bool) (interrupted bool, err error) {
	err = j.endRun(ctx, lease, run, func(e *ending) error {
		if interrupted = interruptible && e.turnSince != 0; interrupted {
			return e.requeue()
		}
		if err := e.tx.Later(nil, nil, `UPDATE runs SET claims = claims - 1 WHERE row = ?`, run.Row); err != nil {
			return err
		}
		return e.tx.Later(nil, nil, `UPDATE threads SET turn_at = ? WHERE id = ?`, millis(until), run.Thread)
	})
	return interrupted, err
}
