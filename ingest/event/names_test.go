package event_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/ingest/event"
)

func TestNamesIn(t *testing.T) {
	names := event.Names{"<@1>": "Ash", "<@!1>": "Ash", "<#2>": "garden"}
	for text, want := range map[string]event.Names{
		"":                      nil,
		"@1> <@1 <@3>":          nil,
		"<<@1>> and <#2>, <@1>": {"<@1>": "Ash", "<#2>": "garden"},
		"> <@!1>":               {"<@!1>": "Ash"},
	} {
		if diff := cmp.Diff(want, names.In(text)); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

// TestNamesAreFoundInOneReading finds as many names as a search of the whole text for each could not find in minutes.
func TestNamesAreFoundInOneReading(t *testing.T) {
	names := event.Names{}
	var text strings.Builder
	for i := range 200_000 {
		token := fmt.Sprintf("<@%d>", i)
		names[token] = "Ash"
		text.WriteString(token)
	}
	if found := names.In(text.String()); len(found) != len(names) {
		t.Errorf("%d of %d names are found", len(found), len(names))
	}
}
