package event

import "sync/atomic"

// Batch is a series of envelopes whose commits have the order of the series: after one of them
// was not stored, none of the later ones is. Nil is a batch of one envelope.
type Batch struct{ broken atomic.Bool }

// Break notes that an envelope of the batch is not stored.
func (b *Batch) Break() {
	if b != nil {
		b.broken.Store(true)
	}
}

// IsBroken reports whether an envelope of the batch is not stored.
func (b *Batch) IsBroken() bool { return b != nil && b.broken.Load() }
