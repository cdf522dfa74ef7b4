package adapters

import (
	"context"
	"sync"
	"time"
)

// Kept keeps the answers of a platform for a while, and no errors. It is safe for concurrent use; the zero value is ready.
type Kept[V any] struct {
	mu sync.Mutex
	// newer and old are the two generations of a bounded cache, as those of Names.
	newer, old map[string]keptValue[V]
}

type keptValue[V any] struct {
	value V
	until time.Time
}

// Get returns what is kept under a key, or else what ask returns within a second, which is kept for the time.
func (k *Kept[V]) Get(ctx context.Context, key string, keep time.Duration, ask func(context.Context) (V, error)) (V, error) {
	k.mu.Lock()
	v, ok := k.newer[key]
	if !ok {
		v = k.old[key]
	}
	k.mu.Unlock()
	if time.Now().Before(v.until) {
		return v.value, nil
	}
	asked, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	value, err := ask(asked)
	if err != nil {
		return value, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.newer == nil || len(k.newer) >= nameLimit {
		k.old, k.newer = k.newer, map[string]keptValue[V]{}
	}
	k.newer[key] = keptValue[V]{value, time.Now().Add(keep)}
	return value, nil
}

// Forget forgets all answers.
func (k *Kept[V]) Forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.newer, k.old = nil, nil
}
