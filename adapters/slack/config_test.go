package slack

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/adapters/slack/send"
	"parley/config/secret"
)

// TestConfigFaults checks the keys at fault in each mode. Package config tests the
// messages.
func TestConfigFaults(t *testing.T) {
	for name, c := range map[string]struct {
		change func(c *Config)
		want   []string
	}{
		"the defaults with their tokens": {func(c *Config) {}, nil},
		"socket needs no signing secret": {func(c *Config) { c.SigningSecret = secret.Value{} }, nil},
		"socket needs both tokens":       {func(c *Config) { c.AppToken, c.BotToken = secret.New(""), secret.Value{} }, []string{"bot_token", "app_token"}},
		"http needs no app token": {func(c *Config) {
			c.Mode, c.AppToken, c.SigningSecret = ModeHTTP, secret.Value{}, secret.New("8f742231b10e")
		}, nil},
		"a short signing secret":         {func(c *Config) { c.SigningSecret = secret.New("8f742231b1") }, []string{"signing_secret"}},
		"a signing secret of one letter": {func(c *Config) { c.SigningSecret = secret.New("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx") }, []string{"signing_secret"}},
		"http needs the signing secret":  {func(c *Config) { c.Mode = ModeHTTP }, []string{"signing_secret"}},
		"an unknown mode":                {func(c *Config) { c.Mode = "rtm" }, []string{"mode"}},
		"swapped tokens":                 {func(c *Config) { c.AppToken, c.BotToken = c.BotToken, c.AppToken }, []string{"bot_token", "app_token"}},
		"an address without a scheme":    {func(c *Config) { c.APIURL = "slack.com/api/" }, []string{"api_url"}},
		"an address with credentials":    {func(c *Config) { c.APIURL = "https://me:pw@slack.com/api/" }, []string{"api_url"}},
		"no limit of our own":            {func(c *Config) { c.PostRate = 0 }, nil},
		"the maximum of sockets":         {func(c *Config) { c.Sockets = 8 }, nil},
		"too many sockets":               {func(c *Config) { c.Sockets = 9 }, []string{"sockets"}},
		"no socket":                      {func(c *Config) { c.Sockets = 0 }, []string{"sockets"}},
		"numbers out of range":           {func(c *Config) { c.PostRate, c.Timeout, c.FileOver = -1, 0, -1 }, []string{"post_rate", "timeout", "file_over"}},
		"unknown values":                 {func(c *Config) { c.Preview, c.Working = "on", "" }, []string{"preview", "working"}},
		"other known values":             {func(c *Config) { c.Preview, c.Working, c.FileOver = "off", "off", 0 }, nil},
		"a status without text":          {func(c *Config) { c.WorkingText = "" }, []string{"working_text"}},
		"an emoji with colons":           {func(c *Config) { c.Working, c.WorkingEmoji = "reaction", ":eyes:" }, []string{"working_emoji"}},
		"an emoji with a skin tone":      {func(c *Config) { c.Working, c.WorkingEmoji = "reaction", "wave::skin-tone-2" }, nil},
		"four prompts":                   {func(c *Config) { c.SuggestedPrompts = slices.Repeat([]send.Prompt{{Title: "a", Message: "b"}}, 4) }, nil},
		"five prompts, one without a message": {func(c *Config) {
			c.SuggestedPrompts = append(slices.Repeat([]send.Prompt{{Title: "a", Message: "b"}}, 4), send.Prompt{Title: "a"})
		},
			[]string{"suggested_prompts", "suggested_prompts[4]"}},
		"no status text with a reaction": {func(c *Config) { c.Working, c.WorkingText, c.WorkingEmoji = "reaction", "", "eyes" }, nil},
	} {
		settings := DefaultConfig()
		settings.AppToken, settings.BotToken = secret.New("xapp-1"), secret.New("xoxb-1")
		c.change(&settings)
		var got []string
		for _, fault := range settings.Validate() {
			got = append(got, fault.Field)
		}
		if warned := settings.Warnings(); len(warned) > 0 {
			t.Errorf("%s is warned of: %v", name, warned)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
