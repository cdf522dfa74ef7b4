package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"parley/ingest/event"
)

// file is one configuration file while it is read.
type file struct {
	name string
	// lines are the lines of the keys, by their paths, such as "channels[0].id".
	lines map[string]int
	// written are the values with references, by their keys, as they are before the replacement.
	written map[string]string
	// entries are the paths of the channels' own settings, such as "channels[0]", by channel id.
	entries map[string]string
	faults  Faults
	// reveals says that settings have the values behind references and masks.
	reveals bool
	// blocks are the keys of the only blocks that are read; nil for the whole file.
	blocks []string
	// faulty holds the keys with a fault. A check of such a key would judge a default
	// instead of the value in the file.
	faulty map[string]bool
	// warnings are unsafe settings, which are allowed.
	warnings Faults
	// included are the files that the last value named, and secrets maps each file that holds a secret, this
	// one or an included one, to a key.
	included []string
	secrets  map[string]string
}

func newFile(name string) *file {
	return &file{name: name, lines: map[string]int{}, written: map[string]string{}, entries: map[string]string{}, faulty: map[string]bool{}, secrets: map[string]string{}}
}

// parse reads a file into nodes. The node is nil if the file has no content. It returns
// false after a fault that leaves nothing to check.
func (f *file) parse() (*yaml.Node, bool) {
	content, err := os.ReadFile(f.name)
	if err != nil {
		f.fault(1, "", unreadable(err))
		return nil, false
	}
	if f.blocks != nil {
		content = only(content, f.blocks)
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
		f.fault(second.Line, "", "begins a second YAML document: remove the line ---, since a file has only one document")
	case !errors.Is(err, io.EOF):
		f.syntax(content, err)
	}
	return document.Content[0], true
}

// unreadable returns the words about a file that can't be read. If its mode is the reason, they name the user of the process.
func unreadable(err error) string {
	words := "can't be read: " + cause(err).Error()
	if errors.Is(err, fs.ErrPermission) {
		name := "with the id " + strconv.Itoa(os.Geteuid())
		if u, err := user.Current(); err == nil {
			name = u.Username
		}
		words += " for the user " + name + ": run the command as the user of the daemon"
	}
	return words
}

// only returns the lines of the top-level blocks with some keys. The other lines are empty.
func only(content []byte, keys []string) []byte {
	lines, in := bytes.Split(content, []byte{'\n'}), false
	for i, line := range lines {
		if len(line) > 0 && !bytes.ContainsAny(line[:1], " \t#\r") {
			key, _, _ := bytes.Cut(line, []byte{':'})
			in = slices.Contains(keys, string(key))
		}
		if !in {
			lines[i] = nil
		}
	}
	return bytes.Join(lines, []byte{'\n'})
}

var (
	syntaxLine    = regexp.MustCompile(`^yaml: line ([0-9]+): (.*)$`)
	unknownAnchor = regexp.MustCompile(`(?s)unknown anchor '(.*)' referenced`)
	// grammar matches the faults for which the parser gives the line before the place,
	// and mostly the line of the list or mapping around it.
	grammar = regexp.MustCompile(`^did not find expected (key|node content|<|'-' indicator|',' or )`)
)

// syntax reports a syntax error of the YAML parser. An unquoted value that begins with *
// may be a password, so the report names only its line.
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
			words = "is not YAML, in this line or in the block that begins here: " + m[2]
		}
	}
	lines := bytes.Split(bytes.TrimRight(content, "\n"), []byte{'\n'})
	isTabbed := func(line int) bool {
		return line <= len(lines) && bytes.HasPrefix(bytes.TrimLeft(lines[line-1], " "), []byte("\t"))
	}
	line = min(line, len(lines))                                                         // the parser counts the end of a file as a line
	if !isTabbed(line) && isTabbed(line+1) && strings.Contains(words, "tab character") { // it gives the line before
		line++
	}
	if bytes.Contains(lines[line-1], []byte("${")) {
		words += "; put a ${NAME} between { } or [ ] in quotes"
	}
	if isTabbed(line) {
		words += "; indent with spaces instead of tabs"
	}
	f.fault(line, "", words)
}

// fault adds a fault of a key. The key is empty for a fault of the whole file.
func (f *file) fault(line int, key, words string) {
	f.faults = append(f.faults, Fault{File: f.name, Line: line, Key: key, Words: words})
	f.faulty[key] = true
}

// report adds the faults of checks, except for keys that have a fault already.
func (f *file) report(faults event.FieldErrors) {
	for _, fault := range faults {
		if !f.hasFault(fault.Field) {
			f.fault(f.line(fault.Field), fault.Field, fault.Message)
		}
	}
}

// hasFault reports whether the key, or a key that contains it, has a fault.
func (f *file) hasFault(key string) bool {
	for ; key != ""; key = parent(key) {
		if f.faulty[key] {
			return true
		}
	}
	return false
}

// line returns the line of the key. For a key that the file lacks, it returns the line of
// the key that would contain it, or else 1.
func (f *file) line(key string) int {
	for ; key != ""; key = parent(key) {
		if line, ok := f.lines[key]; ok {
			return line
		}
	}
	return 1
}

// parent returns the path of the mapping or list that contains a key; "" for the whole file.
func parent(key string) string { return key[:max(strings.LastIndexAny(key, ".["), 0)] }

// has reports whether the file has the key.
func (f *file) has(key string) bool {
	_, ok := f.lines[key]
	return ok
}

// location returns file:line of the key, for a fault at another place.
func (f *file) location(key string) string { return fmt.Sprintf("%s:%d", f.name, f.line(key)) }

// sorted returns the faults in the order of their lines.
func (f *file) sorted() Faults {
	slices.SortStableFunc(f.faults, func(a, b Fault) int { return a.Line - b.Line })
	return f.faults
}
