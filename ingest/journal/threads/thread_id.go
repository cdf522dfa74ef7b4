package threads

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"parley/ingest/event"
	"parley/ingest/journal/storage"
)

// derivedVersion is the version of the UUIDs that the journal makes for threads. No client may
// name a UUID of this version, so none can name a thread of another platform.
const derivedVersion = 5

// IsDerived reports whether a thread's UUID is one that only the journal makes.
func IsDerived(id string) bool {
	u, err := uuid.Parse(id)
	return err == nil && u.Version() == derivedVersion
}

// unusedUUID is the condition that no other thread has the UUID $2 of the thread with the key $1.
const unusedUUID = ` AND NOT EXISTS (SELECT 1 FROM threads WHERE uuid = $2 AND key <> $1)`

// ThreadID returns the UUID of the thread with a key, or the one that a new thread gets: a web thread's own,
// else one that is derived from the key and the present time with a secret of the journal.
func (s *Threads) ThreadID(ctx context.Context, key event.ThreadKey) (id string, err error) {
	if known, err := s.db.Row(ctx, []any{&id}, `SELECT uuid FROM threads WHERE key = $1`, string(key)); known || err != nil {
		return id, err
	}
	secret, err := s.ids.Secret(ctx)
	if err != nil {
		return "", err
	}
	return ThreadUUID(secret, key, s.db.Now()), nil
}

// IDs has the secret from which the UUIDs of threads are made.
type IDs struct {
	db     *storage.DB
	secret atomic.Pointer[[]byte] // nil until it was read
}

// NewIDs returns the UUIDs of the threads in a store.
func NewIDs(db *storage.DB) *IDs { return &IDs{db: db} }

// Secret returns the secret, for ThreadUUID.
func (i *IDs) Secret(ctx context.Context) ([]byte, error) {
	if secret := i.secret.Load(); secret != nil {
		return *secret, nil
	}
	secret, err := key(ctx, i.db, "threads")
	if err == nil {
		i.secret.Store(&secret)
	}
	return secret, err
}

// ThreadUUID returns the UUID of a thread with a key that is made at a time. A derived one begins with the
// time's milliseconds, as a UUIDv7 does, so that new UUIDs are neighbours in the index.
func ThreadUUID(secret []byte, key event.ThreadKey, at time.Time) string {
	if own, ok := ownUUID(key); ok {
		return own
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(key)) // never fails
	var id uuid.UUID
	copy(id[:], binary.BigEndian.AppendUint64(nil, uint64(at.UnixMilli())<<16)[:6])
	copy(id[6:], mac.Sum(nil))
	id[6] = id[6]&0x0f | derivedVersion<<4
	id[8] = id[8]&0x3f | 0x80 // the variant of RFC 9562
	return id.String()
}

// ownUUID returns the UUID in the key of a web thread.
func ownUUID(key event.ThreadKey) (id string, ok bool) {
	const length = 36
	id = string(key[max(0, len(key)-length):])
	return id, strings.HasPrefix(string(key), "web:") && uuid.Validate(id) == nil
}
