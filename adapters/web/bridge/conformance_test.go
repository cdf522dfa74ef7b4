package bridge_test

import (
	"testing"

	"parley/adapters/adaptertest"
	"parley/adapters/web/bridge"
)

// TestConformance runs the shared conformance test with a program that can do everything, and with one that only posts text.
func TestConformance(t *testing.T) {
	for name, change := range map[string]func(*bridge.Config){
		"everything": func(*bridge.Config) {},
		"least": func(c *bridge.Config) {
			c.Format, c.Edits, c.Buttons, c.Working, c.Reactions = bridge.FormatPlain, false, false, false, false
		},
	} {
		t.Run(name, func(t *testing.T) {
			adaptertest.Live(t, func(t *testing.T) adaptertest.Fake {
				p := newProgram(t)
				c := p.settings()
				change(&c)
				return p.fake(c)
			})
		})
	}
}
