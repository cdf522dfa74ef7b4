package files

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"parley/ingest/journal/storage"
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

// HoldCopy removes a copy after a time, unless an attachment or a delivery names it then.
// The caller stores the bytes after it, so that none are left if the process ends. During a
// removal of the copy, the error is ErrUnavailable.
func (f *Files) HoldCopy(ctx context.Context, bucket, path string, atLeast time.Duration) error {
	removed := fmt.Errorf("%w: copy %s is being removed", storage.ErrUnavailable, path)
	return f.db.Change(ctx, "", func(tx *storage.Txn) {
		tx.Must(removed, checkAt+` WHERE copies_to_check.removed_until <= $4`, bucket, path, storage.Millis(f.db.Now().Add(atLeast)), storage.Millis(f.db.Now()))
	})
}

// CopyBytes returns the bytes of the copies in a bucket that messages name. Equal files are one copy.
func (f *Files) CopyBytes(ctx context.Context, bucket string) (bytes int64, err error) {
	err = f.db.One(ctx, []any{&bytes}, `SELECT coalesce(CAST(sum(size) AS BIGINT), 0)
		FROM (SELECT max(size) AS size FROM attachments WHERE state = 'stored' AND bucket = $1 GROUP BY path) AS copies`, bucket)
	return bytes, err
}

// checkAt makes the check of a copy due at a time.
const checkAt = `INSERT INTO copies_to_check (bucket, path, check_at) VALUES ($1, $2, $3)
	ON CONFLICT (bucket, path) DO UPDATE SET check_at = excluded.check_at`

// CheckCopy makes the check of a copy due at a time.
func CheckCopy(tx *storage.Txn, bucket, path string, at time.Time) {
	tx.Do(checkAt, bucket, path, storage.Millis(at))
}

// UnusedCopies signals that RemoveCopies may have work.
func (f *Files) UnusedCopies() <-chan struct{} { return f.copies }

// CopiesChanged sets the signal: copies may have lost their last reference.
func (f *Files) CopiesChanged() { f.copies.Set() }

// RemoveCopies calls remove for each copy that is due and that no attachment and no
// delivery names. It bounds the time of each call. It returns the first error of remove
// after it has tried all of them. A copy whose removal failed is due again later.
func (f *Files) RemoveCopies(ctx context.Context, remove func(ctx context.Context, bucket, path string) error) error {
	var failed error
	for {
		next, err := f.checkNextCopy(ctx)
		if err != nil || next.path == "" {
			return cmp.Or(failed, err)
		}
		if next.used {
			continue
		}
		failed = cmp.Or(failed, f.removeCopy(ctx, next, remove))
	}
}

// removeCopy removes the bytes of a copy. A node that has fetched the same file before may
// record it meanwhile: its next turn copies it again. A check that is due by now stays due.
func (f *Files) removeCopy(ctx context.Context, c checkedCopy, remove func(ctx context.Context, bucket, path string) error) error {
	bounded, cancel := context.WithTimeout(ctx, removeTime)
	defer cancel()
	if err := remove(bounded, c.bucket, c.path); err != nil {
		return err
	}
	return f.db.Change(ctx, "", func(tx *storage.Txn) {
		tx.Do(`DELETE FROM copies_to_check WHERE bucket = $1 AND path = $2 AND check_at > $3`, c.bucket, c.path, storage.Millis(f.db.Now()))
		tx.Do(`UPDATE copies_to_check SET removed_until = 0 WHERE bucket = $1 AND path = $2`, c.bucket, c.path)
		copyLost(tx, c.bucket, c.path)
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
func (f *Files) checkNextCopy(ctx context.Context) (checkedCopy, error) {
	return storage.Write(ctx, f.db, storage.WriteOptions{}, func(tx *storage.Txn) (c checkedCopy) {
		now := f.db.Now()
		if !tx.Row([]any{&c.bucket, &c.path}, `UPDATE copies_to_check SET check_at = $1 WHERE check_at <= $2 AND removed_until <= $2 AND (bucket, path) =
			(SELECT bucket, path FROM copies_to_check WHERE check_at <= $2 AND removed_until <= $2 ORDER BY check_at LIMIT 1) RETURNING bucket, path`,
			storage.Millis(now.Add(recheckCopy)), storage.Millis(now)) {
			return c
		}
		if tx.Has(`SELECT 1 FROM attachments WHERE state = 'stored' AND path = $2 AND bucket = $1 LIMIT 1`, c.bucket, c.path) {
			c.used = true
			tx.Do(`DELETE FROM copies_to_check WHERE bucket = $1 AND path = $2`, c.bucket, c.path)
			return c
		}
		c.used = tx.Has(`SELECT 1 FROM deliveries WHERE file <> '' AND file LIKE '%' || CAST($1 AS TEXT) || '%' LIMIT 1`, c.path)
		if c.used {
			CheckCopy(tx, c.bucket, c.path, now.Add(checkNew))
		} else {
			tx.Do(`UPDATE copies_to_check SET removed_until = $3 WHERE bucket = $1 AND path = $2`, c.bucket, c.path, storage.Millis(now.Add(2*removeTime)))
		}
		return c
	})
}

// CopyLost records that the bytes of a copy are gone: the next turn that shows its file
// copies it again.
func (f *Files) CopyLost(ctx context.Context, bucket, path string) error {
	return f.db.Change(ctx, "", func(tx *storage.Txn) { copyLost(tx, bucket, path) })
}

func copyLost(tx *storage.Txn, bucket, path string) {
	tx.Do(`UPDATE attachments SET state = 'pending', bucket = '', path = '', sha256 = ''
		WHERE state = 'stored' AND path = $2 AND bucket = $1`, bucket, path)
}

// SetAttachment records the state of a file's copy and the known facts about the file. If
// the file's message was deleted meanwhile, the copy is due for removal. Another node may
// delete the message at the same time and not see the copy. So the copy is checked again
// later.
func (f *Files) SetAttachment(ctx context.Context, a Attachment, sha256 string) error {
	recorded, err := storage.Write(ctx, f.db, storage.WriteOptions{}, func(tx *storage.Txn) int64 {
		if a.Path != "" {
			CheckCopy(tx, a.Bucket, a.Path, f.db.Now().Add(checkNew))
		}
		return tx.Exec(`UPDATE attachments SET state = $3, bucket = $4, path = $5, sha256 = $6, name = $7, size = $8, mime_type = $9, type = $10, duration_ms = $11
			WHERE id = $1 AND external_id = $2 AND state = 'pending'`,
			a.Row, a.ID, string(a.State), a.Bucket, a.Path, sha256, a.Name, a.Size, a.MimeType, a.Type, a.DurationMS)
	})
	if err == nil && recorded == 0 && a.Path != "" {
		err = f.db.Change(ctx, "", func(tx *storage.Txn) { CheckCopy(tx, a.Bucket, a.Path, time.Time{}) })
		f.copies.Set()
	}
	return err
}

// CorrectChecks makes checks of copies due now that are due later than a time, because the clock led. It ends holds that end later.
func CorrectChecks(tx *storage.Txn, now, late int64) {
	tx.Do(`UPDATE copies_to_check SET check_at = $1 WHERE check_at > $2`, now, late)
	tx.Do(`UPDATE copies_to_check SET removed_until = $1 WHERE removed_until > $2`, now, late)
}
