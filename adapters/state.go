package adapters

import "context"

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
