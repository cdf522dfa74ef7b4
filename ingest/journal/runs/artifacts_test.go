package runs

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/ingest/event"
)

// TestPathsOfArtifacts checks the places of a run's files: each has its own, and no name leads out of its folder.
func TestPathsOfArtifacts(t *testing.T) {
	taken := map[string]bool{}
	var got []string
	for _, f := range []Artifact{
		{Made: true, File: event.Attachment{Name: "plot.png"}}, {Made: true, File: event.Attachment{Name: "plot.png"}}, {Made: true, File: event.Attachment{Name: "plot.png"}},
		{File: event.Attachment{Name: "plot.png"}}, {File: event.Attachment{Name: "../a"}}, {File: event.Attachment{Name: ".."}}, {File: event.Attachment{}},
		{Child: "w1", Made: true, File: event.Attachment{Name: "plot.png"}}, {Child: "w1/w2", Made: true, File: event.Attachment{Name: "plot.png"}},
	} {
		got = append(got, f.path(taken))
	}
	want := []string{"out/plot.png", "out/plot-2.png", "out/plot-3.png", "files/plot.png", "files/.._a", "files/__", "files/file", "files/w1/plot.png", "files/w1/w2/plot.png"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
