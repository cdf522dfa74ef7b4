package adapters

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	// lookupTimeout bounds how long a message waits for an answer of a platform that is kept.
	lookupTimeout = time.Second
	// keptLimit bounds each generation of kept answers.
	keptLimit = 10_000
)

// ErrResting means that a platform was not asked, because it has not answered lately; see Rest.
var ErrResting = errors.New("the platform does not answer, so it is not asked for a few seconds")

// Kept keeps the answers of a platform for a while, and no errors. It rests while the platform hangs. It is safe for
// concurrent use; the zero value is ready.
type Kept[V any] struct {
	mu sync.Mutex
	// newer and old are the two generations of a bounded cache. When the newer one is
	// full, it replaces the old one, so answers without a recent use are dropped.
	newer, old map[string]keptValue[V]
	rest       Rest
}

type keptValue[V any] struct {
	value V
	until time.Time
}

// Get returns what is kept under a key, or else what ask returns within a second, which is kept for the time that ask
// names. Its errors are those of ask, and ErrResting.
func (k *Kept[V]) Get(ctx context.Context, key string, ask func(context.Context) (V, time.Duration, error)) (V, error) {
	k.mu.Lock()
	v, ok := k.newer[key]
	if !ok {
		v = k.old[key]
	}
	k.mu.Unlock()
	if !time.Now().Before(v.until) {
		if k.rest.Now() {
			return *new(V), ErrResting
		}
		asked, cancel := context.WithTimeout(ctx, lookupTimeout)
		defer cancel()
		value, keep, err := ask(asked)
		if k.rest.Note(ctx, err); err != nil {
			return value, err
		}
		v = keptValue[V]{value, time.Now().Add(keep)}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.newer == nil || len(k.newer) >= keptLimit {
		k.old, k.newer = k.newer, map[string]keptValue[V]{}
	}
	k.newer[key] = v
	return v.value, nil
}

// Forget forgets all answers.
func (k *Kept[V]) Forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.newer, k.old = nil, nil
}
