package operator

import (
	"net/http"
	"time"

	"parley/config"
)

var stepRoutes = []Route{
	{Pattern: "GET steps", Role: config.RoleViewer, stream: func(s *Service, c *Call, w http.ResponseWriter) error {
		if err := s.needsLive("the steps of messages"); err != nil {
			return err
		}
		if err := c.Known("workspace", "thread", "after", "follow"); err != nil {
			return err
		}
		thread := c.Query("thread")
		if thread != "" {
			t, err := s.thread(c.Context(), thread)
			if err != nil {
				return err
			}
			thread = string(t.Key)
		}
		workspace := c.Query("workspace")
		return follow(s, c, w, &s.Live.Steps.ring, func(step Step) bool {
			return (workspace == "" || step.Workspace == workspace) && (thread == "" || step.Thread == thread)
		})
	}},
}

// Step is one step of a message through the daemon. It has no text of a person.
type Step struct {
	At        time.Time `json:"at"`
	Workspace string    `json:"workspace"`
	Thread    string    `json:"thread"` // the key; empty if unknown
	What      string    `json:"what"`   // one of the steps
	Agent     string    `json:"agent"`
	MS        int64     `json:"ms"` // how long it took, if that is known
	Detail    string    `json:"detail"`
}

// The steps of a message.
const (
	StepReceived = "received" // its payload is durable
	StepDecided  = "decided"
	StepTurn     = "turn"     // it waits for an answer
	StepAttempt  = "attempt"  // an attempt of its run has ended
	StepAnswered = "answered" // the run has an answer
	StepDelivery = "delivery" // a post of the answer has a final state
)

// Steps keeps the newest 2,000 steps on a node. The zero value is empty.
type Steps struct{ ring ring[Step] }

// Add adds a step. It never waits.
func (s *Steps) Add(step Step) { s.ring.add(step) }
