package turn

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestConfigFaults checks the faulty fields; package config checks the messages.
func TestConfigFaults(t *testing.T) {
	for name, c := range map[string]struct {
		change func(c *Config)
		want   []string
	}{
		"the defaults":                      {func(c *Config) {}, nil},
		"nothing":                           {func(c *Config) { *c = Config{} }, []string{"mode", "stale", "unknown", "max_attempts"}},
		"each message a turn":               {func(c *Config) { c.Coalesce = 0 }, nil},
		"a longest wait below the shortest": {func(c *Config) { c.CoalesceMax = c.Coalesce - 1 }, []string{"coalesce_max"}},
		"a negative wait":                   {func(c *Config) { c.Coalesce = -1 }, []string{"coalesce"}},
		"the other words":                   {func(c *Config) { c.Mode, c.Stale, c.Unknown = ModeSteer, StaleDrop, UnknownHold }, nil},
	} {
		settings := DefaultConfig()
		c.change(&settings)
		var got []string
		for _, fault := range settings.Validate() {
			got = append(got, fault.Field)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
