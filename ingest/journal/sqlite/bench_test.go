package sqlite_test

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"parley/ingest/journal/storage"
)

// BenchmarkWrite measures three small inserts per call. The name says how many callers
// wait concurrently.
func BenchmarkWrite(b *testing.B) {
	for _, callers := range []int{1, 16, 64} {
		b.Run(fmt.Sprint(callers), func(b *testing.B) {
			e := open(b, file(b))
			body := make([]byte, 600)
			var n atomic.Int64
			b.SetParallelism(max(1, callers/runtime.GOMAXPROCS(0)))
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					key := fmt.Sprint("key ", n.Add(1))
					if err := e.Write(b.Context(), storage.WriteOptions{}, func(tx storage.Tx) error {
						for range 3 {
							if _, err := tx.Exec("INSERT INTO log (name, body) VALUES (?, ?)", key, body); err != nil {
								return err
							}
						}
						return nil
					}); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}

// BenchmarkRead measures a snapshot of fifty rows.
func BenchmarkRead(b *testing.B) {
	e := open(b, file(b))
	for i := range 1000 {
		write(b, e, insert(fmt.Sprint("fact ", i)))
	}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			rows := 0
			if err := e.Read(b.Context(), func(tx storage.Tx) error {
				return tx.Rows(func(scan func(...any) error) error {
					var id int64
					var name string
					rows++
					return scan(&id, &name)
				}, "SELECT id, name FROM facts WHERE id > ? ORDER BY id LIMIT 50", int64(500))
			}); err != nil || rows != 50 {
				b.Fatal(rows, err)
			}
		}
	})
}
