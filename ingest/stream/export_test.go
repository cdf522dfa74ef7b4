package stream

import "time"

// ReadableAt is Readable, except that a message without a time gets now.
func (m Message) ReadableAt(runID string, now time.Time) Readable {
	if m.Time.IsZero() {
		m.Time = now
	}
	return m.Readable(runID)
}
