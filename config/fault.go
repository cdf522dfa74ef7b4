package config

import (
	"fmt"
	"strings"
)

// Fault is one fault of a configuration file.
type Fault struct {
	File string // empty if there is no file, since all is the default
	Line int
	Key  string // such as "slack.mode" or "channels[0].id"; empty for the whole file
	// Words tell the fault and the remedy. They contain no configured value other than
	// ids.
	Words string
}

// String returns file:line: key: words.
func (f Fault) String() string {
	switch {
	case f.File == "":
		return f.Key + ": " + f.Words
	case f.Key == "":
		return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Words)
	}
	return fmt.Sprintf("%s:%d: %s: %s", f.File, f.Line, f.Key, f.Words)
}

// Faults are all the faults of a configuration, in the order of files and lines.
type Faults []Fault

// Error returns one line for each fault.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i, fault := range f {
		lines[i] = fault.String()
	}
	return strings.Join(lines, "\n")
}
