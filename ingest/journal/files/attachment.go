package files

import (
	"parley/ingest/event"
	"parley/ingest/journal/storage"
)

// Attachment is a message's file and the state of its copy.
type Attachment struct {
	event.Attachment
	Row   int64
	State State
	// Bucket and Path are the place of the stored copy.
	Bucket, Path string
}

// State is the state of the copy of a file.
type State string

// The states of an attachment.
const (
	Pending     State = "pending"
	Stored      State = "stored"
	Unavailable State = "unavailable"
)

// Of returns the files of a message, by its row.
func Of(tx *storage.Txn, message int64) []Attachment {
	return storage.Rows(tx, func(a *Attachment) []any {
		return []any{&a.Row, &a.ID, &a.Name, &a.MimeType, &a.Size, &a.Type, &a.DurationMS, &a.Words, (*string)(&a.State), &a.Bucket, &a.Path}
	}, `SELECT id, external_id, name, mime_type, size, type, duration_ms, words, state, bucket, path FROM attachments WHERE message = $1 ORDER BY part`, message)
}

// Add stores files of a message, by its row, from a part on.
func Add(tx *storage.Txn, message int64, part int, list []event.Attachment) (added []Attachment) {
	for i, file := range list {
		a := Attachment{Attachment: file, State: Pending}
		switch {
		case file.Gone:
			a.State = Unavailable
		case file.Copy != nil:
			a.State, a.Bucket, a.Path = Stored, file.Copy.Bucket, file.Copy.Path
		}
		tx.Do(`INSERT INTO attachments (message, part, external_id, name, mime_type, size, type, duration_ms, words, state, bucket, path) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
			message, int64(part+i), file.ID, file.Name, file.MimeType, file.Size, file.Type, file.DurationMS, file.Words, string(a.State), a.Bucket, a.Path)
		added = append(added, a)
	}
	return added
}

// SetWords changes the text of a file, such as a transcription that was not ready.
func SetWords(tx *storage.Txn, a *Attachment, words string) {
	a.Words = words
	tx.Do(`UPDATE attachments SET words = $2 WHERE id = $1`, a.Row, words)
}

// Drop drops the copy of a file that the platform does not have any more.
func Drop(tx *storage.Txn, a *Attachment) {
	a.State, a.Bucket, a.Path, a.Words = Unavailable, "", "", ""
	tx.Do(checkAttached(`id = $1`), a.Row)
	tx.Do(`UPDATE attachments SET state = $2, bucket = '', path = '', sha256 = '', words = '' WHERE id = $1`, a.Row, string(a.State))
}

// Delete deletes the files of a message, by its row.
func Delete(tx *storage.Txn, message int64) {
	tx.Do(checkAttached(`message = $1`), message)
	tx.Do(`DELETE FROM attachments WHERE message = $1`, message)
}

// OfMessages returns the statements that delete the attachments of a page of a workspace's messages; see storage.Step.
func OfMessages() []string {
	const condition = `message IN (SELECT row FROM messages WHERE row > $1 AND row <= $2 AND workspace = $3)`
	return []string{checkAttached(condition), `DELETE FROM attachments WHERE ` + condition}
}
