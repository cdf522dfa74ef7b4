package threads

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"parley/ingest/journal/storage"
)

// Ticket admits one request for a path with the rights of a workspace's token. Token is the
// caller's name of the token, which changes with the token's secret and rights.
type Ticket struct{ Workspace, Token, Path string }

// PutTicket stores a ticket under its secret for some time. The store has only a hash of the
// secret.
func (s *Threads) PutTicket(ctx context.Context, secret string, t Ticket, age time.Duration) error {
	return s.db.Change(ctx, "", func(tx *storage.Txn) {
		tx.Do(`INSERT INTO tickets (hash, workspace, token, path, until_at) VALUES ($1, $2, $3, $4, $5)`,
			hashOf(secret), t.Workspace, t.Token, t.Path, storage.Millis(s.db.Now().Add(age)))
	})
}

// TakeTicket returns and removes the ticket with a secret. It fails with ErrNotFound if there
// is none, or none any more.
func (s *Threads) TakeTicket(ctx context.Context, secret string) (Ticket, error) {
	if err := s.db.One(ctx, []any{new(int64)}, `SELECT 1 FROM tickets WHERE hash = $1`, hashOf(secret)); err != nil {
		return Ticket{}, err // a guess costs no write
	}
	return storage.Write(ctx, s.db, storage.WriteOptions{}, func(tx *storage.Txn) (t Ticket) {
		if !tx.Row([]any{&t.Workspace, &t.Token, &t.Path},
			`DELETE FROM tickets WHERE hash = $1 AND until_at > $2 RETURNING workspace, token, path`, hashOf(secret), storage.Millis(s.db.Now())) {
			tx.Fail(storage.ErrNotFound)
		}
		return t
	})
}

// hashOf returns the stored form of a ticket's secret. A lookup of a hash tells nobody in its
// duration how much of a guess is right.
func hashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}
