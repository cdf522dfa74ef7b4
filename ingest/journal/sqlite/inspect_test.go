package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"parley/ingest/journal/journaltest"
	"parley/ingest/journal/sqlite"
	"parley/ingest/journal/storage"
)

// TestInspect counts the messages since a time. A removed one counts if it is among them.
func TestInspect(t *testing.T) {
	t.Parallel()
	path, start := filepath.Join(journaltest.Dir(t), "parley.db"), time.UnixMilli(1_750_000_000_000)
	engine, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const messages = 20
	err = engine.Write(t.Context(), storage.WriteOptions{}, func(tx storage.Tx) error {
		for i := range messages {
			if _, err := tx.Exec(fmt.Sprintf(`INSERT INTO messages (id, thread, workspace, sender_id, author, trigger, content, metadata, version, origin, sent_at, created_at)
				VALUES ('m%d', 1, 'w', 's', 'human', 'none', '', x'', 1, 'live', $1, $1)`, i), start.Add(time.Duration(i)*time.Hour).UnixMilli()); err != nil {
				return err
			}
		}
		_, err := tx.Exec(`DELETE FROM messages WHERE row IN (1, 8, 9, 20)`)
		return err
	})
	if err = errors.Join(err, engine.Close()); err != nil {
		t.Fatal(err)
	}
	for since, want := range map[time.Duration]int64{-time.Hour: 19, 4 * time.Hour: 15, 8 * time.Hour: 12, 18 * time.Hour: 1, 30 * time.Hour: 0} {
		if got, err := sqlite.Inspect(t.Context(), path, start.Add(since)); err != nil || got.Since != want || got.Messages != 19 || got.Damage != "" {
			t.Errorf("since %v: %+v, %v; want %d", since, got, err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := sqlite.Inspect(ctx, path, start); err == nil {
		t.Error("an ended context ends nothing")
	}
}
