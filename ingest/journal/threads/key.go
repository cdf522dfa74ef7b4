package threads

import (
	"context"
	"crypto/rand"
	"encoding/hex"

	"parley/ingest/journal/storage"
)

// keyBytes is the length of a key.
const keyBytes = 32

// Key returns the store's own secret key with a name, for the signatures of this daemon. The
// first call makes it. It is the same on all nodes and after each restart.
func (s *Threads) Key(ctx context.Context, name string) ([]byte, error) { return key(ctx, s.db, name) }

func key(ctx context.Context, db *storage.DB, name string) ([]byte, error) {
	state := AdapterState{db, ""} // no workspace has this id, so that the keys stay
	stored, err := state.Get(ctx, "key."+name)
	if err == nil && stored == "" {
		made := make([]byte, keyBytes)
		_, _ = rand.Read(made) // never fails
		err = state.Update(ctx, "key."+name, func(value string) string {
			if value == "" {
				value = hex.EncodeToString(made)
			}
			stored = value
			return value
		})
	}
	if err != nil {
		return nil, err
	}
	return hex.DecodeString(stored)
}
