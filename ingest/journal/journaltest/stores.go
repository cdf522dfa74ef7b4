package journaltest

import (
	"context"
	"sync"
	"testing"

	"parley/ingest/journal/storage"
)

// stores lends stores to tests. The creation of a store takes longer than most tests, so
// a store is emptied after its test and lent to the next one.
type stores[S storage.Engine] struct {
	// create creates an empty store, which outlives the test.
	create func(t *testing.T) S
	// tables is a query for the names of the journal's tables.
	tables string

	mu   sync.Mutex
	free []S
}

// lend returns an empty store for a test.
func (s *stores[S]) lend(t *testing.T) S {
	t.Helper()
	store, ok := s.take()
	if !ok {
		store = s.create(t)
	}
	t.Cleanup(func() {
		if t.Failed() {
			return // its goroutines may still use the store
		}
		if err := s.empty(context.WithoutCancel(t.Context()), store); err != nil {
			t.Errorf("empty the store: %v", err)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.free = append(s.free, store)
	})
	return store
}

// take returns an unused store, if there is one.
func (s *stores[S]) take() (store S, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.free) == 0 {
		return store, false
	}
	store, s.free = s.free[0], s.free[1:]
	return store, true
}

// empty deletes all rows. The sequences of ids continue.
func (s *stores[S]) empty(ctx context.Context, store S) error {
	return store.Write(ctx, storage.WriteOptions{}, func(tx storage.Tx) error {
		var tables []string
		err := tx.Rows(func(scan func(...any) error) error {
			var table string
			err := scan(&table)
			tables = append(tables, table)
			return err
		}, s.tables)
		if err != nil {
			return err
		}
		for _, table := range tables {
			if err := tx.Later(nil, nil, "DELETE FROM "+table); err != nil {
				return err
			}
		}
		return nil
	})
}

// closed closes an engine when a test ends.
func closed(t *testing.T, engine storage.Engine) {
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
}
