package journal

import (
	"fmt"
	"slices"

	"parley/ingest/event"
)

// maxViewing bounds the stored view of a thread, in bytes.
const maxViewing = 4 << 10

// viewing is the column of a thread's view.
type viewing struct {
	At    int64          `json:"at"` // Unix microseconds, the resolution of platforms' times
	Extra event.Metadata `json:"extra"`
}

// view stores the view of the person in the thread. The newest event wins, in any order
// of arrival.
func (r *recordTx) view(v *event.Viewing) {
	before := r.viewing()
	now := viewing{At: v.At.UnixMicro(), Extra: event.Metadata{Extra: v.Extra}}
	column := r.pack(now, false)
	if r.thread.viewing != "" && now.At <= before.At || len(column) > maxViewing {
		r.ignore(event.ReasonNoChange)
		return
	}
	r.out.Fate = event.Fate{Disposition: event.Updated}
	if slices.EqualFunc(before.Extra.Extra, v.Extra, func(a, b event.Extra) bool { return a.Key == b.Key && string(a.Value) == string(b.Value) }) {
		r.ignore(event.ReasonNoChange)
	}
	r.out.Opened = v.Opened && r.thread.viewing == ""
	r.do(`UPDATE threads SET viewing = $2 WHERE id = $1`, r.thread.id, column)
}

// viewing reads the thread's view.
func (r *recordTx) viewing() (v viewing) {
	if err := unpack(r.thread.viewing, &v); err != nil {
		r.fail(fmt.Errorf("thread %d: viewing: %w", r.thread.id, err))
	}
	return v
}

// viewed returns a message with its sender's view. The new state of a message keeps the
// view of its first state.
func (r *recordTx) viewed(m *event.Message, known *Message) *event.Message {
	if r.thread.viewing == "" {
		return m
	}
	extra := r.viewing().Extra.Extra
	if known != nil {
		extra = r.metadata(known).Extra
	}
	if len(extra) == 0 {
		return m
	}
	seen := *m
	seen.Metadata.Extra = slices.Clone(m.Metadata.Extra)
	for _, e := range extra {
		if !slices.ContainsFunc(seen.Metadata.Extra, func(has event.Extra) bool { return has.Key == e.Key }) {
			seen.Metadata.Extra = append(seen.Metadata.Extra, e)
		}
	}
	seen.Metadata.Edited()
	return &seen
}
