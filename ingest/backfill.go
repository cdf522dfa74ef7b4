package ingest

import (
	"parley/adapters"
	"parley/ingest/event"
)

// Backfill knows the gaps of a workspace; backfill.Workspace implements it. Its methods
// are called concurrently and never wait.
type Backfill interface {
	// Behind reports whether messages of a thread may be missing.
	Behind(thread event.ThreadKey) bool
	// Accepted notes the first durable accept of a live payload of a channel. retried
	// says that the platform had sent it before.
	Accepted(channel string, retried bool)
	// Refused notes that a live payload of a channel was refused; retried as in Accepted.
	Refused(channel string, retried bool)
}

// isLive reports whether the platform sent a payload of its own accord.
func isLive(envelope event.Envelope) bool {
	return envelope.Transport != event.Backfilled && !event.IsOurs(envelope.Transport)
}

// arrived reports to the backfill that a live payload of a channel is durable.
func (w *workspace) arrived(envelope event.Envelope, channel string) {
	if w.config.Backfill != nil && isLive(envelope) {
		w.config.Backfill.Accepted(channel, envelope.Retried)
	}
}

// lost reports to the backfill that a live payload was refused: the platform may give it
// up. It does not read the store. Payloads of the backfill itself are not reported,
// because it hands a refused payload over again.
func (in *Ingest) lost(w *workspace, envelope event.Envelope) {
	if w.config.Backfill == nil || !isLive(envelope) {
		return
	}
	_ = in.guard(func() error {
		keys := w.config.Normalizer.Keys(envelope, &directory{workspace: w, err: adapters.ErrBusy})
		w.config.Backfill.Refused(keys.Channel.ID, envelope.Retried)
		return nil
	})
}

// behind reports whether messages of a thread may be missing.
func (w *workspace) behind(thread event.ThreadKey) bool {
	return w.config.Backfill != nil && w.config.Backfill.Behind(thread)
}
