package doctor

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"parley/config"
)

// private is a file or a folder that only its owner may use.
type private struct {
	path string
	mode fs.FileMode // the most that it may have
}

// privates returns the files that hold secrets or words of people. A missing one does not count.
func (v *visit) privates() (all []private) {
	for _, path := range v.places.Secrets() {
		all = append(all, private{path, 0o600})
	}
	c := v.config
	if c.Store.Engine == config.SQLite {
		dir := filepath.Dir(c.Store.Path)
		all = append(all, private{c.Store.Path, 0o600}, private{c.Store.Path + "-wal", 0o600}, private{filepath.Join(dir, "local.token"), 0o600})
		if filepath.Clean(dir) != "." { // the folder of the configuration
			all = append(all, private{dir, 0o700})
		}
	}
	return append(all, private{c.Attachments.Dir, 0o700})
}

// files judges the modes of files that only the daemon's user may read. With Fix it corrects them.
func (v *visit) files(context.Context) (all []Check) {
	for _, p := range v.privates() {
		info, err := os.Stat(p.path)
		if err != nil || info.Mode().Perm()&^p.mode == 0 {
			continue
		}
		check := Check{Name: "files", State: Warning, File: p.path, Words: fmt.Sprintf("others can use %s: run chmod %o on it", p.path, info.Mode().Perm()&p.mode)}
		if v.Fix {
			if err := os.Chmod(p.path, info.Mode().Perm()&p.mode); err != nil {
				check.Words += " (" + err.Error() + ")"
			} else {
				check.State, check.Words = OK, fmt.Sprintf("%s has the mode %o now", p.path, info.Mode().Perm()&p.mode)
			}
		}
		all = append(all, check)
	}
	if len(all) == 0 {
		all = []Check{{Name: "files", State: OK, Words: "only their owner can use those with secrets and messages"}}
	}
	return all
}
