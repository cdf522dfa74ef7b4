package journaltest

import (
	"bytes"
	"sync"
)

func keyPromises() []promise {
	return []promise{
		{"all nodes have the same key, also if they make it concurrently", keyShared},
		{"each name has a key of its own", keyNamed},
	}
}

func (f *fixture) key(name string) []byte {
	f.Helper()
	key, err := f.Threads.Key(f.ctx, name)
	f.must(err)
	return key
}

func keyShared(f *fixture) {
	var keys [8][]byte
	var errs [8]error
	var all sync.WaitGroup
	for i := range keys {
		all.Go(func() { keys[i], errs[i] = f.Threads.Key(f.ctx, "links") })
	}
	all.Wait()
	for i, key := range keys {
		f.must(errs[i])
		same(f, "the same", bytes.Equal(key, keys[0]), true)
	}
	same(f, "length", len(keys[0]), 32)
	f.must(f.Threads.Configured(f.ctx, nil)) // all workspaces are removed
	same(f, "after a restart", bytes.Equal(f.successor("second").key("links"), keys[0]), true)
}

func keyNamed(f *fixture) {
	same(f, "two names have one key", bytes.Equal(f.key("links"), f.key("tickets")), false)
}
