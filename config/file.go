package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"parley/ingest/event"
)

// file is one configuration file while it is read.
type file struct {
	name   string
	lookup func(name string) (value string, ok bool) // the environment
	// lines tells where each key stands, by its path, such as "channels[0].id".
	lines  map[string]int
	faults Faults
}

// open reads a file as far as its nodes. A nil node is a file without content;
// false means that a fault leaves nothing to look at.
func (f *file) open() (*yaml.Node, bool) {
	content, err := os.ReadFile(f.name)
	if err != nil {
		f.fault(1, "", "can't be read: "+cause(err).Error())
		return nil, false
	}
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	var document, second yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		return nil, true
	case err != nil:
		f.syntax(content, err)
		return nil, false
	}
	switch err := decoder.Decode(&second); {
	case err == nil:
		f.fault(second.Line, "", "begins a second document: one file holds one, so take out the ---")
	case !errors.Is(err, io.EOF):
		f.syntax(content, err)
	}
	return document.Content[0], true
}

var (
	syntaxLine    = regexp.MustCompile(`^yaml: line ([0-9]+): (.*)$`)
	unknownAnchor = regexp.MustCompile(`(?s)unknown anchor '(.*)' referenced`)
	// grammar are the faults of whose place the parser gives the line before,
	// and mostly that of the list or mapping around it.
	grammar = regexp.MustCompile(`^did not find expected (key|node content|<|'-' indicator|',' or )`)
)

// syntax reports what the YAML parser can't read. An unquoted value that begins
// with * is named by its line alone, since it may be a password.
func (f *file) syntax(content []byte, err error) {
	if m := unknownAnchor.FindStringSubmatch(err.Error()); m != nil {
		line := 1
		if before, _, ok := bytes.Cut(content, []byte("*"+m[1])); ok {
			line += bytes.Count(before, []byte{'\n'})
		}
		f.fault(line, "", noAlias)
		return
	}
	line, words := 1, "is not YAML: "+strings.TrimPrefix(err.Error(), "yaml: ")
	if m := syntaxLine.FindStringSubmatch(err.Error()); m != nil {
		line, _ = strconv.Atoi(m[1]) // digits
		words = "is not YAML: " + m[2]
		if grammar.MatchString(m[2]) {
			line++
			words = "is not YAML, here or in what begins here: " + m[2]
		}
	}
	lines := bytes.Split(bytes.TrimRight(content, "\n"), []byte{'\n'})
	line = min(line, len(lines)) // the end of a file counts as a line of its own
	if bytes.Contains(lines[line-1], []byte("${")) {
		words += "; between { } and [ ] a ${NAME} must stand in quotes"
	}
	f.fault(line, "", words)
}

func (f *file) fault(line int, key, words string) {
	f.faults = append(f.faults, Fault{File: f.name, Line: line, Key: key, Words: words})
}

// judge adds what validation found, except for keys that have a fault already.
func (f *file) judge(faults event.FieldErrors) {
	for _, fault := range faults {
		if !f.faulty(fault.Field) {
			f.fault(f.line(fault.Field), fault.Field, fault.Message)
		}
	}
}

// faulty says that the key, or what it stands in, has a fault already: what is
// judged then is a default, not what was written.
func (f *file) faulty(key string) bool {
	return slices.ContainsFunc(f.faults, func(fault Fault) bool {
		rest, inside := strings.CutPrefix(key, fault.Key)
		return fault.Key != "" && inside && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

// line is where the key stands, or else what it would stand in.
func (f *file) line(key string) int {
	for key != "" {
		if line, ok := f.lines[key]; ok {
			return line
		}
		key = key[:max(strings.LastIndexAny(key, ".["), 0)]
	}
	return 1
}

// has says whether the file holds the key.
func (f *file) has(key string) bool {
	_, ok := f.lines[key]
	return ok
}

// where names the key's place for a fault in another place.
func (f *file) where(key string) string { return fmt.Sprintf("%s:%d", f.name, f.line(key)) }

// sorted returns the faults in the order of their lines.
func (f *file) sorted() Faults {
	slices.SortStableFunc(f.faults, func(a, b Fault) int { return a.Line - b.Line })
	return f.faults
}
