package pipeline

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/adapters/agent/agui"
	"parley/config"
	"parley/ingest/event"
)

// TestApproversOfAPlatform: the ids of a configuration become those of the events.
func TestApproversOfAPlatform(t *testing.T) {
	var remote agui.Config
	remote.Approvers = []string{"U0MARA", "+1 (555) 555-0142", "Nora@Example.org"}
	agents := map[string]Agent{"helper": {Agent: config.Agent{Config: &remote}}}
	for platform, want := range map[event.Platform][]string{
		"slack":       remote.Approvers,
		"bluebubbles": {"U0MARA", "+15555550142", "nora@example.org"},
	} {
		w := config.NewWorkspace("w", platform, "helper")
		p, _ := config.Platform(platform)
		if diff := cmp.Diff(want, IngestSettings(&w, agents, p, "", "").Approvers("helper")); diff != "" {
			t.Errorf("%s: %s", platform, diff)
		}
	}
}
