package discord

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/config/secret"
)

// TestConfigFaults holds what a bot needs; the words are held by package config.
func TestConfigFaults(t *testing.T) {
	for name, c := range map[string]struct {
		change func(c *Config)
		want   []string
	}{
		"the defaults with a token":               {func(c *Config) {}, nil},
		"an empty token":                          {func(c *Config) { c.Token = secret.New("") }, []string{"token"}},
		"a token as the header has it":            {func(c *Config) { c.Token = secret.New("Bot MTk4.abc") }, []string{"token"}},
		"an address with credentials and no time": {func(c *Config) { c.APIURL, c.Timeout = "https://discord.com/?t=1", 0 }, []string{"api_url", "timeout"}},
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
