package console_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"parley/ingest/journal/journaltest"
	"parley/ingest/journal/postgres"
	"parley/ingest/journal/postgres/postgrestest"
	"parley/ingest/journal/sqlite"
	"parley/ingest/journal/storage"
)

// BenchmarkThreads asks for the first page of 10,000 threads, over HTTP.
func BenchmarkThreads(b *testing.B) {
	for name, open := range map[string]func() (storage.Engine, error){
		"sqlite": func() (storage.Engine, error) {
			return sqlite.Open(b.Context(), filepath.Join(journaltest.Dir(b), "parley.db"), sqlite.Options{})
		},
		"postgres": func() (storage.Engine, error) {
			return postgres.Open(b.Context(), postgres.Options{URL: postgrestest.URL(b), Connections: 4})
		},
	} {
		b.Run(name, func(b *testing.B) {
			engine, err := open()
			if err != nil {
				b.Fatal(err)
			}
			base := time.Now()
			s := newSiteOn(b, engine, configured(b), func() time.Time { return base })
			s.service.Live = filledLive(base)
			err = engine.Write(b.Context(), storage.WriteOptions{}, func(tx storage.Tx) error {
				for i := int64(1); i <= 10_000; i++ {
					at, id := base.UnixMilli()-i, fmt.Sprintf("0190a1b2-0000-7000-8000-%012d", i)
					if _, err := tx.Exec(`INSERT INTO threads (id, key, uuid, workspace, platform, channel, last_at, next_seq) VALUES ($1, $2, $3, 'acme', 'slack', 'C0GARDEN', $4, 2)`, i, "slack:acme:C0GARDEN:"+id, id, at); err != nil {
						return err
					}
					if _, err := tx.Exec(`INSERT INTO messages (id, thread, seq, workspace, external_id, sender_id, author, trigger, content, metadata, version, origin, sent_at, created_at)
						VALUES ($1, $2, 1, 'acme', $3, 'slack:U1', 'human', 'run', 'how are the tomatoes today?', $4, 1, 'live', $5, $5)`, "m"+id, i, id, []byte("{}"), at); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				b.Fatal(err)
			}
			client := s.browser(b, operatorToken+"-long-enough")
			for b.Loop() {
				if status, page := answer(b, client, s.get("/threads")); status != 200 || len(page) < 10_000 {
					b.Fatalf("%d %d", status, len(page))
				}
			}
		})
	}
}
