package bluebubbles

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/adapters/bluebubbles/call"
	"parley/adapters/bluebubbles/payload"
	"parley/adapters/bluebubbles/send"
	"parley/config/secret"
)

// validConfig returns the defaults with a server.
func validConfig() Config {
	c := DefaultConfig()
	c.URL, c.Password, c.WebhookSecret = "http://mac.local:1234", secret.New("pass-of-the-test"), secret.New("a-secret-of-24_characters")
	return c
}

func faultsOf(c Config) (keys []string) {
	for _, fault := range c.Validate() {
		keys = append(keys, fault.Field)
	}
	return keys
}

// TestConfigFaults checks the keys of the faults. Package config checks their texts.
func TestConfigFaults(t *testing.T) {
	for name, c := range map[string]struct {
		change func(c *Config)
		want   []string
	}{
		"the defaults with a server": {func(*Config) {}, nil},
		"nothing": {func(c *Config) { *c = Config{} },
			[]string{"url", "password", "webhook_secret", "method", "poll", "read_receipts", "working", "from_me", "timeout"}},
		"the password in the address": {func(c *Config) { c.URL = "http://mac.local:1234?password=p" }, []string{"url"}},
		"a secret that a URL escapes": {func(c *Config) { c.WebhookSecret = secret.New("a/b/c/d/e/f/g/h/i/j/k/l/m") }, []string{"webhook_secret"}},
		"a short password":            {func(c *Config) { c.Password = secret.New("abc") }, []string{"password"}},
		"a password of one letter":    {func(c *Config) { c.Password = secret.New(strings.Repeat("a", 20)) }, []string{"password"}},
		"a secret of one letter":      {func(c *Config) { c.WebhookSecret = secret.New(strings.Repeat("a", 24)) }, []string{"webhook_secret"}},
		"a short secret":              {func(c *Config) { c.WebhookSecret = secret.New("short") }, []string{"webhook_secret"}},
		"the other values": {func(c *Config) {
			c.Method, c.FromMe, c.ReadReceipts, c.Working = call.MethodPrivateAPI, FromMeRun, send.ReceiptsOff, send.WorkingOff
		}, nil},
		"a negative rate, and no time": {func(c *Config) { c.PostRate, c.Poll = -1, -time.Second }, []string{"poll", "post_rate"}},
		"a chat twice": {func(c *Config) {
			c.Channels = []payload.ChannelWake{{ID: "iMessage;+;chat1", Wake: []string{"parley"}}, {ID: "chat2"}, {ID: "chat1", Wake: []string{"bot"}}}
		}, []string{"channels[2].id"}},
		"empty words": {func(c *Config) { c.Wake, c.Channels = []string{" "}, []payload.ChannelWake{{Wake: []string{""}}} },
			[]string{"wake[0]", "channels[0].id", "channels[0].wake[0]"}},
	} {
		settings := validConfig()
		c.change(&settings)
		if diff := cmp.Diff(c.want, faultsOf(settings)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestURLMustBePrivate checks that the password passes no foreign network in plain text.
func TestURLMustBePrivate(t *testing.T) {
	for address, want := range map[string]bool{
		"http://127.0.0.1:1234": true, "http://localhost:1234": true, "http://[::1]:1234": true, "http://192.168.1.5:1234": true,
		"http://10.0.0.1": true, "http://172.31.0.1": true, "http://[fd00::1]": true, "http://100.101.1.2": true, "http://mac.local": true,
		"http://mac": true, "http://Mac.Home.Arpa.": true, "https://bb.example.org": true, "https://8.8.8.8": true,
		"http://8.8.8.8": false, "http://bb.example.org": false, "http://172.32.0.1": false, "http://[2001:db8::1]": false,
		"http://local.example.org": false, "http://100.128.0.1": false,
	} {
		c := validConfig()
		c.URL = address
		if got := faultsOf(c) == nil; got != want {
			t.Errorf("%s: accepted %v", address, got)
		}
		if c.Insecure = true; faultsOf(c) != nil {
			t.Errorf("%s: refused although insecure is set", address)
		}
	}
}
