package legacy_test

import (
	"testing"

	"parley/assembly/legacy"
	"parley/ingest/event"
)

func TestStrip(t *testing.T) {
	for _, c := range []struct{ source, content, want string }{
		{"slack", "[Slack channel:C06RY3YBSLE user:Olivia (<@U06STGBF4Q0>)] testing from slack", "testing from slack"},
		{"discord", "[Discord channel:123456 user:Olivia] testing from discord", "testing from discord"},
		{"bluebubbles", "[Olivia]: testing from imessage", "testing from imessage"},

		{"slack", "[Slack channel:C1 user:A] [Slack channel:C1 user:A] x", "[Slack channel:C1 user:A] x"},
		{"slack", "[Olivia]: hi", "[Olivia]: hi"},
		{"slack", "[Slack channel:C1 user:A]] x", "] x"},
		{"slack", "[Slack channel:C1 user:A]no-space", "no-space"},
		{"slack", "[Slack channel:C1 user:A]\n\n  multi", "multi"},
		{"slack", "[Slack channel:C1 user:A user:B] x", "x"},
		{"slack", " [Slack channel:C1 user:A] x", " [Slack channel:C1 user:A] x"},
		{"slack", "[slack channel:C1 user:A] x", "[slack channel:C1 user:A] x"},
		{"slack", "[Slack channel:C 1 user:A] x", "[Slack channel:C 1 user:A] x"},
		{"slack", "[Slack channel: user:A] x", "[Slack channel: user:A] x"},
		{"slack", "[Slack channel:C1] x", "[Slack channel:C1] x"},
		{"slack", "[Slack channel:C1 user:A x", "[Slack channel:C1 user:A x"},
		{"slack", "[Slack channel:C1 user:A]", ""},
		{"slack", "[Discord channel:1 user:A] x", "[Discord channel:1 user:A] x"},
		{"discord", "[Discord channel:1 user:]x", "[Discord channel:1 user:]x"},
		{"bluebubbles", "[Olivia]:hi", "hi"},
		{"bluebubbles", "[Olivia]: [Bob]: hi", "[Bob]: hi"},
		{"bluebubbles", "[]: hi", "[]: hi"},
		{"bluebubbles", "[Olivia] hi", "[Olivia] hi"},
		{"bluebubbles", "Olivia]: hi", "Olivia]: hi"},
		{"web", "[Olivia]: hi", "[Olivia]: hi"},
		{"", "[Olivia]: hi", "[Olivia]: hi"},
	} {
		if got := legacy.Strip(c.content, c.source, 0); got != c.want {
			t.Errorf("%s %q: got %q, want %q", c.source, c.content, got, c.want)
		}
		if got := legacy.Strip(c.content, c.source, 1); got != c.content {
			t.Errorf("%s %q of version 1: got %q", c.source, c.content, got)
		}
	}
}

// TestAdd adds the prefix of each source, which Strip removes again.
func TestAdd(t *testing.T) {
	for _, source := range []string{"slack", "discord", "bluebubbles", "web"} {
		author := event.Metadata{Source: source, SenderDisplayName: "Olivia ]\n[", ChannelExternalID: "C 1", MentionToken: "<@U1>"}
		got := legacy.Add("[Ash]: two\nlines", &author)
		if (source == "web") != (got == "[Ash]: two\nlines") || legacy.Strip(got, source, 0) != "[Ash]: two\nlines" {
			t.Errorf("%s: %q", source, got)
		}
	}
}
