package config

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// lineBreak matches the characters that end a line in YAML.
var lineBreak = regexp.MustCompile("[\n\r\u0085\u2028\u2029]")

// TestAnyFile loads pieces of YAML in random order: Load must return a configuration, or
// faults that name existing lines of the files.
func TestAnyFile(t *testing.T) {
	t.Setenv("A", "a")
	dir := t.TempDir()
	main, workspace := filepath.Join(dir, File), filepath.Join(dir, "w.yaml")
	piece := rapid.OneOf(
		rapid.SampledFrom([]string{
			"id", "platform", "agent", "slack", "web", "tokens", "policy", "allow_users", "loop_guard", "channels", "agents", "workspaces",
			": ", ":\n  ", "\n", "\n  ", "- ", "{", "}", "[", "]", ", ", "*", "&a ", "!t ", "'", `"`, "|\n ", "<<: ", "---\n", "...", "? ",
			"~", "true", "1", "10s", "${A}", "${file:x}", "${", "$", "\t", "\r\n", "\x00", "\xff", "%YAML", "#",
		}),
		rapid.String(),
	)
	rapid.Check(t, func(t *rapid.T) {
		for _, name := range []string{main, workspace} {
			content := strings.Join(rapid.SliceOfN(piece, 0, 20).Draw(t, filepath.Base(name)), "")
			if name == main && rapid.Bool().Draw(t, "sound") {
				content = "workspaces: w.yaml\n"
			}
			if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		c, _, err := LoadPlaces(main)
		var faults Faults
		if (c == nil) == (err == nil) || err != nil && !errors.As(err, &faults) {
			t.Fatalf("LoadPlaces = %v, %v", c, err)
		}
		for _, fault := range faults {
			content, err := os.ReadFile(fault.File)
			if err != nil {
				t.Fatalf("%v: names no file of the configuration", fault)
			}
			if lines := 1 + len(lineBreak.FindAll(content, -1)); fault.Line < 1 || fault.Line > lines {
				t.Fatalf("%v: the file has %d lines", fault, lines)
			}
		}
	})
}
