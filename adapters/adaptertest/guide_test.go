package adaptertest_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/adapters/adaptertest"
)

// TestGuideAdapter runs both conformance suites on the adapter of the guide.
func TestGuideAdapter(t *testing.T) {
	t.Run("recordings", func(t *testing.T) { adaptertest.Run(t, Platform(), "testdata/corkboard.jsonl") })
	t.Run("live", func(t *testing.T) { adaptertest.Live(t, corkFake) })
}

// guideLength bounds the guide, in lines.
const guideLength = 300

// TestGuideShowsCode compares the Go blocks of the guide with corkboard_test.go, and checks the
// guide's length.
func TestGuideShowsCode(t *testing.T) {
	guide := readText(t, "../README.md")
	var blocks []string
	for _, block := range regexp.MustCompile("(?s)```go\n(.*?)\n```").FindAllStringSubmatch(guide, -1) {
		blocks = append(blocks, block[1])
	}
	_, code, found := strings.Cut(readText(t, "corkboard_test.go"), "see TestGuideShowsCode.\n\n")
	if !found {
		t.Fatal("corkboard_test.go has no comment that marks the beginning of the adapter")
	}
	if diff := cmp.Diff(strings.TrimSpace(code), strings.Join(blocks, "\n\n")); diff != "" {
		t.Errorf("the code of the guide differs (-corkboard_test.go +README.md):\n%s", diff)
	}
	if lines := strings.Count(guide, "\n"); lines >= guideLength {
		t.Errorf("the guide has %d lines, must have fewer than %d", lines, guideLength)
	}
}

func readText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
