package assembly_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/assembly"
	"parley/ingest/event"
)

// TestSpeakers are the authors of the turns and of their context, without the agent itself.
func TestSpeakers(t *testing.T) {
	said := func(name string) assembly.Line {
		return assembly.Line{Version: 1, Content: "hm", Metadata: event.Metadata{Source: "web", SenderID: "web:" + name, SenderDisplayName: name, SenderType: event.Human}}
	}
	own := said("helper")
	own.Own = true
	s := assembly.FindSpeakers("helper", []assembly.Turn{
		{Context: []assembly.Line{said("Ash"), own}, Messages: []assembly.Line{said("Olivia [x]")}, Reply: &own},
		{Messages: []assembly.Line{said("Olivia [x]"), said("Bob")}},
	}, nil)
	if diff := cmp.Diff([]string{"[Ash]:", "[Olivia (x)]:", "[Bob]:"}, s.Headers); diff != "" || s.Agent != "helper" || s.AccountName() != "" {
		t.Errorf("%+v\n%s", s, diff)
	}
	s.Account = func() string { return "Parley [bot]\n" }
	if got := s.AccountName(); got != "Parley (bot)" {
		t.Errorf("%q", got)
	}
}
