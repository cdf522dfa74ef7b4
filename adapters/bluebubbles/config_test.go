package bluebubbles

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
		"the defaults with a server":        {func(c *Config) {}, nil},
		"nothing":                           {func(c *Config) { *c = Config{} }, []string{"url", "password", "webhook_secret", "method", "from_me", "timeout"}},
		"the password in the address":       {func(c *Config) { c.URL = "http://mac.local:1234?password=p" }, []string{"url"}},
		"a secret that a URL would escape":  {func(c *Config) { c.WebhookSecret = secret.New("a/b-7f3a9c51d2e84b60a1c35e97") }, []string{"webhook_secret"}},
		"the other method and from_me: run": {func(c *Config) { c.Method, c.FromMe = MethodPrivateAPI, FromMeRun }, nil},
	} {
		settings := DefaultConfig()
		settings.URL = "http://mac.local:1234"
		settings.Password, settings.WebhookSecret = secret.New("p"), secret.New("s-1_x-7f3a9c51d2e84b60a1")
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
