package adapters

import "time"

// ConnectionState is the state of an adapter.
type ConnectionState string

// The states of an adapter.
const (
	Starting ConnectionState = "starting"
	Up       ConnectionState = "up"
	Standby  ConnectionState = "standby" // another node has the exclusive connection
	Down     ConnectionState = "down"    // no events arrive; the adapter or the supervisor keeps trying
	Refused  ConnectionState = "refused" // the operator must act
	Divided  ConnectionState = ""        // the connections of which this one consists have states of their own
)

// Status is an adapter's state on this node.
type Status struct {
	State ConnectionState `json:"state"`
	Error string          `json:"error,omitempty"`
	// Warning describes a trouble of a connection that works; empty for none.
	Warning string    `json:"warning,omitempty"`
	Since   time.Time `json:"since"`
}
