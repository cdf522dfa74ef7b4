package access

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
		"one token, with the defaults": {func(c *Config) {}, nil},
		"no token":                     {func(c *Config) { c.Tokens = nil }, []string{"tokens"}},
		"an empty entry":               {func(c *Config) { c.Tokens[0] = Token{} }, []string{"tokens[0].id", "tokens[0].token", "tokens[0].name"}},
		"an integration":               {func(c *Config) { c.Tokens[0].Senders = SendersAny }, nil},
		"the same caller twice":        {func(c *Config) { c.Tokens = append(c.Tokens, c.Tokens[0]) }, []string{"tokens[1].id", "tokens[1].token"}},
		"a reader":                     {func(c *Config) { c.Tokens[0].Read = []string{"acme", "Acme Inc"} }, []string{"tokens[0].read[1]"}},
		"a poster":                     {func(c *Config) { c.Tokens[0].Posts = []string{"acme", "acme:C06RY3YBSLE", "acme:", "Acme Inc"} }, []string{"tokens[0].posts[2]", "tokens[0].posts[3]"}},
		"an agent that posts": {func(c *Config) {
			c.Tokens[0].Posts, c.Tokens[0].Actor = []string{"acme"}, "agent:6ba7b811-9dad-41d1-80b4-00c04fd430c8"
		}, []string{"tokens[0].posts"}},
		"origins": {func(c *Config) { c.Origins = []string{"https://app.example.com", "http://localhost:3000"} }, nil},
		"no origins": {func(c *Config) {
			c.Origins = []string{"*", "null", "https://app.example.com/", "https://App.example.com", "app.example.com"}
		},
			[]string{"origins[0]", "origins[1]", "origins[2]", "origins[3]", "origins[4]"}},
		"an agent":                 {func(c *Config) { c.Tokens[0].Actor = "agent:6ba7b811-9dad-41d1-80b4-00c04fd430c8" }, nil},
		"an actor in upper case":   {func(c *Config) { c.Tokens[0].Actor = "user:6BA7B811-9DAD-41D1-80B4-00C04FD430C8" }, []string{"tokens[0].actor"}},
		"an actor of another kind": {func(c *Config) { c.Tokens[0].Actor = "bot:helper" }, []string{"tokens[0].actor"}},
		"an id with a space":       {func(c *Config) { c.Tokens[0].ID = "a b" }, []string{"tokens[0].id"}},
	} {
		settings := DefaultConfig()
		settings.Tokens = []Token{{ID: "ci", Name: "CI", Token: secret.New("ci-7f3a9c51d2e84b60a1c35e97")}}
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
