package journal

import (
	"encoding/json"
	"fmt"
	"slices"

	"parley/ingest/event"
)

// maxViewing bounds what is remembered of a thread's view, in bytes.
const maxViewing = 4 << 10

// viewing is a thread's view as its column holds it.
type viewing struct {
	At    int64          `json:"at"` // Unix microseconds, as fine as a platform tells time
	Extra event.Metadata `json:"extra"`
}

// view remembers what the person in the thread is looking at. The newest event
// wins, in whatever order they come.
func (r *recording) view(v *event.Viewing) error {
	var before viewing
	if err := unpack(r.thread.viewing, &before); err != nil {
		return fmt.Errorf("thread %d: viewing: %w", r.thread.id, err)
	}
	now := viewing{At: v.At.UnixMicro(), Extra: event.Metadata{Extra: v.Extra}}
	if r.thread.viewing != "" && now.At <= before.At {
		r.ignore(event.ReasonNoChange)
		return nil
	}
	column, err := json.Marshal(now)
	if err != nil || len(column) > maxViewing {
		r.ignore(event.ReasonNoChange)
		return err
	}
	r.out.Fate = event.Fate{Disposition: event.Updated}
	if sameExtra(before.Extra.Extra, v.Extra) {
		r.ignore(event.ReasonNoChange)
	}
	r.out.Opened = v.Opened && r.thread.viewing == ""
	return r.tx.Later(nil, nil, `UPDATE threads SET viewing = ? WHERE id = ?`, string(column), r.thread.id)
}

// viewed is a message with what its sender was looking at when they sent it. The
// new state of a message keeps what its first one had.
func (r *recording) viewed(m *event.Message, known *Message) (*event.Message, error) {
	if r.thread.viewing == "" {
		return m, nil
	}
	extra, err := r.viewExtra(known)
	if err != nil || len(extra) == 0 {
		return m, err
	}
	seen := *m
	seen.Metadata.Extra = slices.Clone(m.Metadata.Extra)
	for _, e := range extra {
		if !slices.ContainsFunc(seen.Metadata.Extra, func(has event.Extra) bool { return has.Key == e.Key }) {
			seen.Metadata.Extra = append(seen.Metadata.Extra, e)
		}
	}
	seen.Metadata.Edited()
	return &seen, nil
}

// viewExtra is what is looked at now, or what a known message has beside the
// contract's keys.
func (r *recording) viewExtra(known *Message) ([]event.Extra, error) {
	if known != nil {
		metadata, err := event.ReadMetadata(known.Metadata)
		return metadata.Extra, err
	}
	var v viewing
	err := unpack(r.thread.viewing, &v)
	return v.Extra.Extra, err
}

func sameExtra(a, b []event.Extra) bool {
	return slices.EqualFunc(a, b, func(a, b event.Extra) bool { return a.Key == b.Key && string(a.Value) == string(b.Value) })
}
