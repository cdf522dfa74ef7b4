package event

// IsStale reports whether a reply whose agent began at a thread_seq is behind a thread whose
// highest thread_seq is current. Without a base, the answer is unknown: nil.
func IsStale(base *int64, current int64) *bool {
	lag := ComputeStaleLag(base, current)
	if lag == nil {
		return nil
	}
	return new(*lag > 0)
}

// ComputeStaleLag returns the number of messages by which such a reply is behind. It is 0 for
// a base beyond current. Without a base, the number is unknown: nil.
func ComputeStaleLag(base *int64, current int64) *int64 {
	if base == nil {
		return nil
	}
	return new(max(0, current-*base))
}

// Known is the newest messages that an agent outside Parley knew when it wrote its own, by
// thread_seq; nil if the agent did not say.
type Known struct {
	BaseSeq       *int64 `json:"base_seq,omitempty"`        // when it began
	LatestSeenSeq *int64 `json:"latest_seen_seq,omitempty"` // when it ended
}
