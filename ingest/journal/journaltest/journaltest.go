// Package journaltest holds the promises that a journal makes on every engine.
//
// An engine's test calls Run. Each subtest states one promise in its name and
// reads as its specification; none knows which engine it stands on.
package journaltest

import (
	"testing"

	"parley/ingest/journal"
)

// promise is one thing that a journal guarantees.
type promise struct {
	name  string
	holds func(t *testing.T, open func(*testing.T) journal.Engine)
}

// Run holds the journal to its promises on the engines that open returns: each
// call gives an engine on an empty database with the journal's schema, which
// open closes when its test ends.
func Run(t *testing.T, open func(t *testing.T) journal.Engine) {
	groups := map[string][]promise{
		"way": wayPromises(),
	}
	for name, promises := range groups {
		t.Run(name, func(t *testing.T) {
			for _, p := range promises {
				t.Run(p.name, func(t *testing.T) { p.holds(t, open) })
			}
		})
	}
}
