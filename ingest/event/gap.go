package event

import "time"

// Gap is a time range in which messages of a channel may be missing.
type Gap struct {
	// Channel is the channel's id on the platform.
	Channel string
	// From and Until bound the range, in microseconds and by the platform's time.
	From, Until time.Time
}

// Union returns the smallest range that covers both gaps; a zero gap covers nothing.
func (g Gap) Union(other Gap) Gap {
	if g.Until.IsZero() {
		return other
	}
	if !other.Until.IsZero() && other.From.Before(g.From) {
		g.From = other.From
	}
	if other.Until.After(g.Until) {
		g.Until = other.Until
	}
	return g
}

// Covers reports whether the other range lies within this one.
func (g Gap) Covers(other Gap) bool {
	return !g.From.After(other.From) && !g.Until.Before(other.Until)
}

// Backfilled is the transport of an envelope that was read from the platform because
// its message may have been missed.
const Backfilled = "backfill"

// Reread is the transport of an envelope that was read from the platform as the context
// of a turn. No such envelope is accepted durably.
const Reread = "context"

// ByOperator is the transport of an envelope that an operator's answer to a question made. Its body is in a form
// of our own on each platform.
const ByOperator = "operator"

// ByParley is the transport of an envelope that Parley itself made, such as the task of a workstream. Its body is in
// a form of our own on each platform.
const ByParley = "parley"

// ByProgram is the transport of an envelope with a message that a program injects. Its body is in a form of our own on
// each platform.
const ByProgram = "program"

// IsOurs reports whether envelopes of a transport have a body in a form of our own on each platform.
func IsOurs(transport string) bool {
	return transport == ByOperator || transport == ByParley || transport == ByProgram
}
