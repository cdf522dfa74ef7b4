package setup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"parley/cmd/parley/internal/doctor"
	"parley/config"
)

// agentID is the id of the agent that is made.
const agentID = "assistant"

// Part is a choice with its answers, by the keys of its fields.
type Part struct {
	Choice
	Answers map[string]string
}

// Plan is a configuration to write.
type Plan struct {
	Workspace string // the id; empty for the built-in workspace
	Platform  Part
	Agent     Part
	// Data is the absolute folder of the store and the attachments; empty for data beside the configuration.
	Data string
}

// File is a file to write. Only its owner may read it.
type File struct {
	Path    string // relative to the folder of the configuration
	Content string
}

// Files returns the files of the plan. Those of secrets are in the folder secrets.
func (p Plan) Files() []File {
	agent, secrets := p.Agent.lines(agentID, "secrets/", "    ")
	files := []File{{config.File, fmt.Sprintf("# written by parley init\n%sagents:\n  - id: %s\n    kind: %s\n%s", p.places(), agentID, p.Agent.Name, agent)}}
	files = append(files, secrets...)
	if p.Platform.Name == "" {
		return files
	}
	block, secrets := p.Platform.lines(p.Workspace, "../secrets/", "  ")
	text := fmt.Sprintf("# written by parley init\nid: %s\nplatform: %s\nagent: %s\n%s:\n%s", p.Workspace, p.Platform.Name, agentID, p.Platform.Name, block)
	return append(append(files, File{"workspaces/" + p.Workspace + ".yaml", text}), secrets...)
}

// places returns the lines of the store, the attachments and the socket; none for their defaults.
func (p Plan) places() string {
	if p.Data == "" {
		return ""
	}
	place := func(parts ...string) string {
		return yamlText(filepath.Join(append([]string{p.Data}, parts...)...))
	}
	return fmt.Sprintf("store: \"sqlite:%s\"\nattachments: {dir: \"%s\"}\noperator: {dir: \"%s\"} # for a store on PostgreSQL\n", place("parley.db"), place("attachments"), place())
}

// yamlText returns a text as it stands between double quotes in YAML. It is no reference to a variable.
func yamlText(text string) string { return quoted(strings.ReplaceAll(text, "${", "$${")) }

// quoted returns a text as it stands between double quotes in YAML.
func quoted(text string) string {
	encoded, _ := json.Marshal(text) // a text always encodes, and YAML reads it
	return string(encoded[1 : len(encoded)-1])
}

// lines returns the lines of a block, and the files of its secrets, whose names begin with owner. folder is
// that of the secrets as the file of the block names it.
func (p Part) lines(owner, folder, indent string) (text string, secrets []File) {
	for _, f := range p.Fields {
		value := p.Answers[f.Key]
		if value == "" || f.Unasked && value == f.Default {
			continue
		}
		if f.Secret {
			name := owner + "-" + f.Key
			secrets = append(secrets, File{"secrets/" + name, value + "\n"})
			value = quoted("${file:" + folder + name + "}")
		} else {
			value = yamlText(value)
		}
		line := f.Form
		if line == "" {
			line = f.Key + `: "%s"`
		}
		text += indent + fmt.Sprintf(line, value) + "\n"
	}
	return text, secrets
}

// Existing returns the files of the plan that are in a folder already.
func (p Plan) Existing(dir string) (paths []string) {
	for _, f := range p.Files() {
		if _, err := os.Lstat(filepath.Join(dir, f.Path)); !errors.Is(err, fs.ErrNotExist) {
			paths = append(paths, filepath.Join(dir, f.Path))
		}
	}
	return paths
}

// Write writes the files into a folder. It fails if one of them is there already, unless force replaces
// it.
func (p Plan) Write(dir string, force bool) (paths []string, err error) {
	if before := p.Existing(dir); len(before) > 0 && !force {
		return nil, fmt.Errorf("%s exists already: use another folder, or --force to replace it", strings.Join(before, ", "))
	}
	for _, f := range p.Files() {
		path := filepath.Join(dir, f.Path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return paths, err
		}
		if err := replace(path, f.Content); err != nil {
			return paths, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// replace writes a file that only its owner may read, as a whole or not at all.
func replace(path, content string) error {
	draft, err := os.CreateTemp(filepath.Dir(path), ".parley-*") // its mode is 0600
	if err != nil {
		return err
	}
	_, err = draft.WriteString(content)
	if err = errors.Join(err, draft.Close()); err == nil {
		err = os.Rename(draft.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(draft.Name()))
	}
	return nil
}

// Finding is a result of a trial of answers.
type Finding struct {
	Key   string `json:"key"`
	Words string `json:"words"`
	Fault bool   `json:"fault"`
}

// Try reads the plan as a configuration, and asks its platform and its agent whether they take the answers.
func (p Plan) Try(ctx context.Context) (found []Finding, err error) {
	dir, err := os.MkdirTemp("", "parley-init-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if _, err := p.Write(dir, false); err != nil {
		return nil, err
	}
	c, err := config.Load(filepath.Join(dir, config.File))
	if faults, ok := errors.AsType[config.Faults](err); ok {
		for _, f := range faults {
			found = append(found, Finding{f.Key, f.Words, true})
		}
		return found, nil
	}
	if err != nil {
		return nil, err
	}
	for _, f := range doctor.Ask(ctx, c) {
		if f.Workspace != "" || f.Agent != "" {
			found = append(found, Finding{f.Key, f.Words, f.Fault})
		}
	}
	return found, nil
}
