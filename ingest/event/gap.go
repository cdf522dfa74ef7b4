package event

import "time"

// Gap is a time of which it is not sure that all that was said in a place has come in.
type Gap struct {
	// Place is the channel, as the platform names it.
	Place string
	// From and Until bound it, in microseconds and by the platform's time.
	From, Until time.Time
}

// CatchUp is the transport of an envelope that was read from the platform, since it
// may have been missed when it was said.
const CatchUp = "catchup"

// Reread is the transport of an envelope that was read from the platform as the
// context of a turn. None is ever in custody.
const Reread = "context"
