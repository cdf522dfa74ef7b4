package journal

import "parley/ingest/journal/places"

// InvocationOnly implements Look.
func (r *recordTx) InvocationOnly() bool { return r.thread.mode == places.ModeInvocationOnly }
