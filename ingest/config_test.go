package ingest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPolicyFaults checks the keys of the faults; package config checks their words.
func TestPolicyFaults(t *testing.T) {
	for name, c := range map[string]struct {
		change func(c *Policy)
		want   []string
	}{
		"the defaults": {func(c *Policy) {}, nil},
		"zero":         {func(c *Policy) { *c = Policy{} }, []string{"bot_messages", "max_age", "loop_guard.runs", "loop_guard.per", "reply", "mentions", "strangers"}},
		"ids of every platform": {func(c *Policy) {
			c.AllowUsers = []string{"U06STGBF4Q0", "80351110224678912", "+15551234567", "a@example.org"}
		}, nil},
		"a chat's guid": {func(c *Policy) { c.AllowChannels = []string{"iMessage;-;+15551234567"} }, nil},
		"names and mentions": {func(c *Policy) {
			c.AllowUsers, c.AllowBots, c.AllowChannels = []string{"@ash", "<@U1>", " U1"}, []string{"B1", "@hal"}, []string{"C1", "#general", ""}
		}, []string{"allow_users[0]", "allow_users[1]", "allow_users[2]", "allow_bots[1]", "allow_channels[1]", "allow_channels[2]"}},
	} {
		settings := DefaultPolicy()
		c.change(&settings)
		var got []string
		for _, fault := range settings.Validate(Forms{}) {
			got = append(got, fault.Field)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
