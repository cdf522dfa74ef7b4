package config

import (
	"maps"
	"slices"
)

// Places locates keys in the files of workspaces, by id, and in parley.yaml, which has the empty id.
type Places map[string]*file

// Fault returns a fault of a workspace's key, such as "slack.bot_token", or of a key of
// parley.yaml if the workspace is empty. Its line is that of the key, or of the key that would
// contain it.
func (p Places) Fault(workspace, key, words string) Fault {
	f := p[workspace]
	if f == nil || f.name == "" {
		return Fault{Key: key, Words: words}
	}
	return Fault{File: f.name, Line: f.line(key), Key: key, Words: words}
}

// Secrets returns the files that hold a secret: those of the configuration, and those that a ${file:…} of
// a secret names.
func (p Places) Secrets() (paths []string) {
	for _, f := range p {
		paths = slices.AppendSeq(paths, maps.Keys(f.secrets))
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}
