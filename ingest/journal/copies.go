package journal

import (
	"cmp"
	"context"
	"fmt"
	"time"
)

const (
	// recheckCopy is the time after which a copy whose removal failed is checked again.
	recheckCopy = time.Hour
	// checkNew is the time after which a new copy is checked. It is longer than any
	// PutBlob, and than any delete that runs at the same time. A copy that a delivery still
	// needs is checked again as late, because the check reads all deliveries with files.
	checkNew = 24 * time.Hour
	// removeTime bounds the removal of one copy. HoldCopy fails for twice that time, because
	// the place may carry out a removal late.
	removeTime = 2 * time.Minute
)

// checkAttached returns a statement that makes a check due at once, for the copies of the
// attachments that meet a condition.
func checkAttached(condition string) string {
	return `INSERT INTO copies_to_check (bucket, path, check_at)
		SELECT DISTINCT bucket, path, 0 FROM attachments WHERE state = 'stored' AND ` + condition + `
		ON CONFLICT (bucket, path) DO UPDATE SET check_at = 0`
}

// checkCopies makes a check of the copies due, for attachments that are about to be
// deleted.
func (r *recordTx) checkCopies(condition string, args ...any) {
	r.copies = true
	r.do(checkAttached(condition), args...)
}

// HoldCopy removes a copy after a time, unless an attachment or a delivery names it then.
// The caller stores the bytes after it, so that none are left if the process ends. During a
// removal of the copy, the error is ErrUnavailable.
func (j *Journal) HoldCopy(ctx context.Context, bucket, path string, atLeast time.Duration) error {
	removed := fmt.Errorf("%w: copy %s is being removed", ErrUnavailable, path)
	return j.change(ctx, "", func(tx *txn) {
		tx.must(removed, checkAt+` WHERE copies_to_check.removed_until <= $4`, bucket, path, millis(j.now().Add(atLeast)), millis(j.now()))
	})
}

// SpendBytes counts the bytes of a sender's file within a time. It returns false, and counts nothing, if
// the sender's bytes within that time would be more than most.
func (j *Journal) SpendBytes(ctx context.Context, sender string, bytes, most int64, per time.Duration) (fits bool, err error) {
	if bytes > most {
		return false, nil
	}
	return write(ctx, j, WriteOptions{}, func(tx *txn) bool {
		now := millis(j.now())
		return tx.exec(`INSERT INTO budgets (workspace, name, until_at, runs, told) VALUES ('', $1, $2, $3, 0)
			ON CONFLICT (workspace, name) DO UPDATE SET
				runs = CASE WHEN budgets.until_at BETWEEN $4 AND excluded.until_at THEN budgets.runs ELSE 0 END + excluded.runs,
				until_at = CASE WHEN budgets.until_at BETWEEN $4 AND excluded.until_at THEN budgets.until_at ELSE excluded.until_at END
			WHERE budgets.until_at NOT BETWEEN $4 AND excluded.until_at OR budgets.runs + excluded.runs <= $5`,
			"files of "+sender, now+per.Milliseconds(), bytes, now+1, most) > 0
	})
}

// CopyBytes returns the bytes of the copies in a bucket that messages name. Equal files are one copy.
func (j *Journal) CopyBytes(ctx context.Context, bucket string) (bytes int64, err error) {
	err = j.one(ctx, []any{&bytes}, `SELECT coalesce(CAST(sum(size) AS BIGINT), 0)
		FROM (SELECT max(size) AS size FROM attachments WHERE state = 'stored' AND bucket = $1 GROUP BY path) AS copies`, bucket)
	return bytes, err
}

// checkAt makes the check of a copy due at a time.
const checkAt = `INSERT INTO copies_to_check (bucket, path, check_at) VALUES ($1, $2, $3)
	ON CONFLICT (bucket, path) DO UPDATE SET check_at = excluded.check_at`

func (tx *txn) checkCopy(bucket, path string, at time.Time) {
	tx.do(checkAt, bucket, path, millis(at))
}

// UnusedCopies signals that RemoveCopies may have work.
func (j *Journal) UnusedCopies() <-chan struct{} { return j.copies }

// RemoveCopies calls remove for each copy that is due and that no attachment and no
// delivery names. It bounds the time of each call. It returns the first error of remove
// after it has tried all of them. A copy whose removal failed is due again later.
func (j *Journal) RemoveCopies(ctx context.Context, remove func(ctx context.Context, bucket, path string) error) error {
	var failed error
	for {
		next, err := j.checkNextCopy(ctx)
		if err != nil || next.path == "" {
			return cmp.Or(failed, err)
		}
		if next.used {
			continue
		}
		failed = cmp.Or(failed, j.removeCopy(ctx, next, remove))
	}
}

// removeCopy removes the bytes of a copy. A node that has fetched the same file before may
// record it meanwhile: its next turn copies it again. A check that is due by now stays due.
func (j *Journal) removeCopy(ctx context.Context, c checkedCopy, remove func(ctx context.Context, bucket, path string) error) error {
	bounded, cancel := context.WithTimeout(ctx, removeTime)
	defer cancel()
	if err := remove(bounded, c.bucket, c.path); err != nil {
		return err
	}
	return j.change(ctx, "", func(tx *txn) {
		tx.do(`DELETE FROM copies_to_check WHERE bucket = $1 AND path = $2 AND check_at > $3`, c.bucket, c.path, millis(j.now()))
		tx.do(`UPDATE copies_to_check SET removed_until = 0 WHERE bucket = $1 AND path = $2`, c.bucket, c.path)
		tx.copyLost(c.bucket, c.path)
	})
}

// checkedCopy is a copy, and whether something names it. It has no path if no copy is due.
type checkedCopy struct {
	bucket, path string
	used         bool
}

// checkNextCopy returns the next copy that is due. It postpones the next check, or takes
// the copy off the list if an attachment names it: the delete of the last one adds it again.
// After it, HoldCopy fails for a copy that nothing names.
func (j *Journal) checkNextCopy(ctx context.Context) (checkedCopy, error) {
	return write(ctx, j, WriteOptions{}, func(tx *txn) (c checkedCopy) {
		now := j.now()
		if !tx.row([]any{&c.bucket, &c.path}, `UPDATE copies_to_check SET check_at = $1 WHERE check_at <= $2 AND removed_until <= $2 AND (bucket, path) =
			(SELECT bucket, path FROM copies_to_check WHERE check_at <= $2 AND removed_until <= $2 ORDER BY check_at LIMIT 1) RETURNING bucket, path`,
			millis(now.Add(recheckCopy)), millis(now)) {
			return c
		}
		if tx.has(`SELECT 1 FROM attachments WHERE state = 'stored' AND path = $2 AND bucket = $1 LIMIT 1`, c.bucket, c.path) {
			c.used = true
			tx.do(`DELETE FROM copies_to_check WHERE bucket = $1 AND path = $2`, c.bucket, c.path)
			return c
		}
		c.used = tx.has(`SELECT 1 FROM deliveries WHERE file <> '' AND file LIKE '%' || CAST($1 AS TEXT) || '%' LIMIT 1`, c.path)
		if c.used {
			tx.checkCopy(c.bucket, c.path, now.Add(checkNew))
		} else {
			tx.do(`UPDATE copies_to_check SET removed_until = $3 WHERE bucket = $1 AND path = $2`, c.bucket, c.path, millis(now.Add(2*removeTime)))
		}
		return c
	})
}

// CopyLost records that the bytes of a copy are gone: the next turn that shows its file
// copies it again.
func (j *Journal) CopyLost(ctx context.Context, bucket, path string) error {
	return j.change(ctx, "", func(tx *txn) { tx.copyLost(bucket, path) })
}

func (tx *txn) copyLost(bucket, path string) {
	tx.do(`UPDATE attachments SET state = 'pending', bucket = '', path = '', sha256 = ''
		WHERE state = 'stored' AND path = $2 AND bucket = $1`, bucket, path)
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
		return tx.exec(`UPDATE attachments SET state = $3, bucket = $4, path = $5, sha256 = $6, name = $7, size = $8, mime_type = $9, type = $10, duration_ms = $11
			WHERE id = $1 AND external_id = $2 AND state = 'pending'`,
			a.Row, a.ID, string(a.State), a.Bucket, a.Path, sha256, a.Name, a.Size, a.MimeType, a.Type, a.DurationMS)
	})
	if err == nil && recorded == 0 && a.Path != "" {
		err = j.change(ctx, "", func(tx *txn) { tx.checkCopy(a.Bucket, a.Path, time.Time{}) })
		j.copies.Set()
	}
	return err
}
