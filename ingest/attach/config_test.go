package attach

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestConfigFaults holds what a store of copies needs.
func TestConfigFaults(t *testing.T) {
	for name, c := range map[string]struct {
		change func(c *Config)
		want   []string
	}{
		"the defaults": {func(c *Config) {}, nil},
		"nothing":      {func(c *Config) { *c = Config{} }, []string{"dir", "max_bytes", "ttl"}},
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
