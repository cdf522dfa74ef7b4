package operator

import (
	"os"
	"strings"
	"testing"
)

// TestPageNamesTheReasons checks that the page about missing answers has each reason for which a message gets none.
func TestPageNamesTheReasons(t *testing.T) {
	page, err := os.ReadFile("../../../../.github/NO_ANSWER.md")
	if err != nil {
		t.Fatal(err)
	}
	answered := map[string]bool{"mention": true, "direct": true, "reply": true, "open": true, "followed": true, "command": true, "schedule": true}
	for name := range reasons {
		if !answered[name] && !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf(".github/NO_ANSWER.md lacks the reason %s", name)
		}
	}
}
