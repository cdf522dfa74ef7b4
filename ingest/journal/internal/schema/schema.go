// Package schema reads an engine's migrations.
package schema

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strconv"
)

// Step is one step of a schema.
type Step struct {
	Version int64
	Name    string // of its file
	Script  string
}

// numbered is how the file of a step is named.
var numbered = regexp.MustCompile(`^(\d{4})_[a-z0-9_]+\.sql$`)

// Steps reads the steps in order; their numbers are 1, 2, 3 and so on.
func Steps(files fs.FS) ([]Step, error) {
	names, err := fs.Glob(files, "*.sql") // sorted
	if err != nil {
		return nil, err
	}
	var steps []Step
	for i, name := range names {
		match := numbered.FindStringSubmatch(path.Base(name))
		if match == nil {
			return nil, fmt.Errorf("%s is not named NNNN_words.sql", name)
		}
		version, err := strconv.Atoi(match[1])
		if err != nil || version != i+1 {
			return nil, fmt.Errorf("%s stands where number %04d should", name, i+1)
		}
		script, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		steps = append(steps, Step{int64(version), name, string(script)})
	}
	return steps, nil
}

// Missing returns the steps that a database of a version still needs. A database
// that a newer program wrote is refused.
func Missing(steps []Step, have int64) ([]Step, error) {
	if have > int64(len(steps)) {
		return nil, fmt.Errorf("its schema has version %d and this program knows %d: run the newer program that wrote it, or restore a backup from before",
			have, len(steps))
	}
	return steps[have:], nil
}
