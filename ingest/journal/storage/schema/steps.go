package schema

import (
	"embed"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

// Step changes a schema. A store takes each step once.
type Step struct {
	Name string // NNNN_words.sql
	Text string // its statements
}

//go:embed steps/*.sql
var files embed.FS

// Steps returns the steps of the journal's schema for an engine. The steps are written in the words of SQLite, which words
// replaces. steps/README.md explains the files.
func Steps(engine string, words *strings.Replacer) (steps []Step) {
	for _, step := range written() {
		steps = append(steps, Step{step.Name, words.Replace(linesFor(engine, step.Text))})
	}
	return steps
}

// linesFor returns the lines of a file that are for an engine or for both.
func linesFor(engine, text string) string {
	var lines strings.Builder
	ours := true
	for line := range strings.Lines(text) {
		if begins, ok := strings.CutPrefix(line, "--- "); ok {
			begins = strings.TrimSpace(begins)
			ours = begins == "both" || begins == engine
		} else if ours {
			lines.WriteString(line)
		}
	}
	return lines.String()
}

var made = regexp.MustCompile(`(?m)^CREATE TABLE (\w+)`)

// Tables returns the names of the journal's tables, in the order in which the steps make them.
func Tables() (names []string) {
	for _, step := range written() {
		for _, found := range made.FindAllStringSubmatch(step.Text, -1) {
			names = append(names, found[1])
		}
	}
	return names
}

// written returns the steps as they are written, by their numbers.
func written() (steps []Step) {
	names, _ := fs.Glob(files, "steps/*.sql") // it fails only for a malformed pattern
	for _, name := range names {
		text, _ := files.ReadFile(name) // it is a part of the program
		steps = append(steps, Step{path.Base(name), string(text)})
	}
	return steps
}
