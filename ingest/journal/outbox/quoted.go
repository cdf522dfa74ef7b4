package outbox

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"parley/ingest/event"
	"parley/ingest/journal/storage"
)

const (
	// quotedDepth bounds the newest messages of a thread among which Quoted looks.
	quotedDepth = int64(1000)
	// quotedSpace bounds the white space before a text, in characters.
	quotedSpace = 64
)

// Quoted returns the id of the thread's newest message, or post of ours, since a time that fits a
// quotation; empty for none. A text that is quoted completely comes before one that only begins with
// the words.
func (o *Outbox) Quoted(ctx context.Context, thread int64, q event.Quotation, since time.Time) (id string, err error) {
	return storage.Read(ctx, o.db, func(tx *storage.Txn) (id string) {
		if q.Text == "" {
			return quotedFile(tx, thread, q.Media, since)
		}
		for _, c := range candidates(tx, `substr(recent.content, 1, $4)`, `substr(d.payload, 1, $4)`, ``, thread, since, int64(quotedSpace+utf8.RuneCountInString(q.Text)+1)) {
			switch text := strings.TrimSpace(c.value); {
			case text == q.Text:
				return c.id
			case id == "" && strings.HasPrefix(text, q.Text):
				id = c.id
			}
		}
		return id
	})
}

// quotedFile returns the id of the newest message, or post of ours, with a file of a media type.
func quotedFile(tx *storage.Txn, thread int64, media string, since time.Time) string {
	for _, c := range candidates(tx, `a.mime_type`, `d.file`, `JOIN attachments a ON a.message = recent.row`, thread, since) {
		if strings.HasPrefix(c.value, "{") { // of a post
			var file File
			tx.Fail(storage.Unpack(c.value, &file))
			c.value = file.MimeType
		}
		if c.value != "" && strings.HasPrefix(c.value, media) {
			return c.id
		}
	}
	return ""
}

// candidate is a message or a post that may be quoted.
type candidate struct {
	id, value string
	seq       int64
}

// candidates reads a value of each of the thread's newest messages and of our posts, newest first.
func candidates(tx *storage.Txn, ofMessage, ofPost, join string, thread int64, since time.Time, more ...any) []candidate {
	return storage.Rows(tx, func(c *candidate) []any { return []any{&c.id, &c.value, &c.seq} }, `
		WITH newest AS (SELECT row, seq, author, external_id, content, run, sent_at FROM messages
			WHERE thread = $1 AND seq IS NOT NULL ORDER BY seq DESC LIMIT $3),
		recent AS (SELECT * FROM newest WHERE sent_at >= $2)
		SELECT recent.external_id, `+ofMessage+`, recent.seq FROM recent `+join+` WHERE recent.author <> 'agent' AND recent.external_id IS NOT NULL
		UNION ALL SELECT d.platform_id, `+ofPost+`, recent.seq FROM recent JOIN deliveries d ON d.run = recent.run
			WHERE recent.author = 'agent' AND d.platform_id IS NOT NULL
		ORDER BY 3 DESC`, append([]any{thread, storage.Millis(since), quotedDepth}, more...)...)
}
