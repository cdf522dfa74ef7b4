package discord

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/config/secret"
)

// TestConfigFaults checks the keys of the faults. Package config checks their texts.
func TestConfigFaults(t *testing.T) {
	for name, c := range map[string]struct {
		change func(c *Config)
		want   []string
	}{
		"the defaults with a token":              {func(c *Config) {}, nil},
		"an empty token":                         {func(c *Config) { c.Token = secret.New("") }, []string{"token"}},
		"a token with the prefix Bot":            {func(c *Config) { c.Token = secret.New("Bot MTk4.abc") }, []string{"token"}},
		"an address with a query and no timeout": {func(c *Config) { c.APIURL, c.Timeout = "https://discord.com/?t=1", 0 }, []string{"api_url", "timeout"}},
	} {
		settings := DefaultConfig()
		settings.Token = secret.New("MTk4.abc")
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
