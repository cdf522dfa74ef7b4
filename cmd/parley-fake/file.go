package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// workspaceFile is the file of a fake's workspace, for the daemon.
type workspaceFile struct {
	write string // the path to write the file to; empty for none
	agent string // the id of the agent that answers
}

// flags declares the flags about the file.
func (f *workspaceFile) flags(flags *flag.FlagSet) {
	flags.StringVar(&f.write, "write", "", "also write the workspace file there, such as workspaces/fake.yaml; another file there stays")
	flags.StringVar(&f.agent, "agent", "echo", "id of the agent that answers, one of those in parley.yaml")
}

// text returns the file of the workspace with an id, in a frame that names its usual path.
func (f *workspaceFile) text(id, platform, settings string) string {
	path := "workspaces/" + id + ".yaml"
	return fmt.Sprintf("%sid: %s\nplatform: %s\nagent: %s\n%s# the end of %s\n", head(path), id, platform, f.agent, settings, path)
}

// head is the first line of each file that a fake writes, by which it knows the file again.
func head(path string) string {
	return fmt.Sprintf("# %s, beside a parley.yaml that may be empty\n", path)
}

// save writes the text to the path of -write, and returns words about it. It replaces a file only if a fake of this id wrote it.
func (f *workspaceFile) save(text string) (said string, err error) {
	if f.write == "" {
		return "", nil
	}
	first, _, _ := bytes.Cut([]byte(text), []byte{'\n'})
	switch before, err := os.ReadFile(f.write); {
	case err == nil && !bytes.HasPrefix(before, first):
		return "", fmt.Errorf("%s is not from this fake: remove it, or write to another path", f.write)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(f.write), 0o700); err != nil {
		return "", err
	}
	next := "parley reload, or parley run"
	if _, err := os.Stat(filepath.Join(filepath.Dir(filepath.Dir(f.write)), "parley.yaml")); errors.Is(err, fs.ErrNotExist) {
		next = "make the file parley.yaml, which may be empty, and then " + next
	}
	return fmt.Sprintf("\nwrote %s\nnext: %s\n", f.write, next), os.WriteFile(f.write, []byte(text), 0o600)
}
