package ingest

import (
	"errors"
	"time"

	"parley/ingest/journal/storage"
)

// refusingFor is how long the store counts as refusing after its last refusal. The platform
// may send no further payload until the refusals are over.
const refusingFor = 5 * time.Second

// refused notes that a payload was not accepted. An error whose outcome is unknown says
// nothing about the store: the next payload may be accepted.
func (in *Ingest) refused(workspace string, err error) {
	if errors.Is(err, storage.ErrUnavailable) && !errors.Is(err, storage.ErrUnclear) {
		in.refusedAt.Store(new(time.Now()))
	}
	in.Work.Warn("durable accept refused", "workspace", workspace, "err", err)
}

// Refusing reports whether the store has refused a payload a moment ago and has accepted
// none since. A full store may still have room for less than a message.
func (in *Ingest) Refusing() bool {
	at := in.refusedAt.Load()
	return at != nil && time.Since(*at) < refusingFor
}
