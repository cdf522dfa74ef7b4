package adapters

import (
	"context"
	"encoding/json"
)

// State is a durable store of small named values for one workspace, such as the cursor of
// a poller. All nodes share it. An adapter uses a bounded number of names.
type State interface {
	// Get returns the value of a name. It is empty if none was stored.
	Get(ctx context.Context, name string) (value string, err error)
	// Put stores a value of at most 64 KiB under a name of at most 100 bytes.
	Put(ctx context.Context, name, value string) error
	// Update replaces a value by the result of change, in one transaction, so that
	// concurrent updates of a name lose nothing. It may call change several times. The
	// caller must not use what change has noted if Update fails, because change may still
	// run.
	Update(ctx context.Context, name string, change func(value string) string) error
}

// MaxState bounds the bytes of one value of the state.
const MaxState = 64 << 10

// UpdateList changes a list that the state has under a name; see State.Update. If the list
// becomes too large for a value, its oldest entries, which come first, are dropped.
func UpdateList[T any](ctx context.Context, state State, name string, change func([]T) []T) error {
	return state.Update(ctx, name, func(value string) string {
		list := change(readList[T](value))
		raw, _ := json.Marshal(list) // its entries always encode
		for len(raw) > MaxState {
			list = list[1:]
			raw, _ = json.Marshal(list)
		}
		return string(raw)
	})
}

// GetList returns a list that the state has under a name.
func GetList[T any](ctx context.Context, state State, name string) ([]T, error) {
	value, err := state.Get(ctx, name)
	return readList[T](value), err
}

// readList reads a stored list. A value that cannot be read is an empty list.
func readList[T any](value string) (list []T) {
	if value == "" || json.Unmarshal([]byte(value), &list) != nil {
		return nil
	}
	return list
}
