package adapters

import "time"

// Metered is an adapter whose requests to its platform are counted.
type Metered interface {
	// UseMeter passes the meter. It is called once, before every other call.
	UseMeter(Meter)
}

// Meter counts the requests of a workspace to its platform. It is called concurrently.
type Meter interface {
	// Requested counts a request. The method is one of a fixed list of the platform. The code is the status
	// of the answer, CodeRefused or CodeNone.
	Requested(method, code string)
	// Throttled counts the wait that an answer has asked for.
	Throttled(wait time.Duration)
}

// The codes of requests that have no status of their own.
const (
	CodeRefused = "refused" // the answer's status is 200, and its content a refusal
	CodeNone    = "none"    // there was no answer
)
