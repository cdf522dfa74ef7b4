package setup

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"parley/adapters"
	"parley/cmd/parley/internal/doctor"
	"parley/config"
)

// agentID is the id of the agent that is made.
const agentID = "assistant"

// Part is a choice with its answers, by the keys of its fields.
type Part struct {
	Choice
	Answers map[string]string
	// Fixed are answers that the configuration has already, so they are neither asked for nor written.
	Fixed map[string]string
}

// Plan is a configuration to write.
type Plan struct {
	// Onto is the configuration that gets the workspace and the agent; nil for a new one.
	Onto *Base
	// AgentID is the id of the agent that is made, or, if the plan makes none, of a configured one; empty for assistant.
	AgentID   string
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
func (p Plan) Files() (files []File, err error) {
	id := cmp.Or(p.AgentID, agentID)
	main, _ := p.Platform.lines(p.Workspace, "", adapters.MainFile)
	if p.Onto != nil {
		main = slices.DeleteFunc(main, func(line string) bool {
			_, ok := p.Platform.Fixed[line[:strings.Index(line, ":")]]
			return ok
		})
	}
	if p.Agent.Name != "" {
		lines, secrets := p.Agent.lines(id, "secrets/", "")
		lines = append([]string{"id: " + id, "kind: " + p.Agent.Name}, lines...)
		text := schemaLine("") + p.places() + written(main) + "\n# Who answers. The first agent also answers parley chat.\nagents:\n" + item("  ", lines)
		if p.Onto != nil {
			if text, err = p.Onto.withAgent(lines); err != nil {
				return nil, err
			}
			text = joined(text, main)
		}
		files = append(append(files, File{config.File, text}), secrets...)
	} else if len(main) > 0 {
		files = append(files, File{config.File, joined(p.Onto.text, main)})
	}
	if p.Platform.Name == "" {
		return files, nil
	}
	path, err := p.file()
	if err != nil {
		return nil, err
	}
	up := strings.Repeat("../", strings.Count(path, "/"))
	block, secrets := p.Platform.lines(p.Workspace, up+"secrets/", "")
	text := schemaLine(up) + fmt.Sprintf("\nid: %s\nplatform: %s\n# The agent of parley.yaml that answers here.\nagent: %s\n\n# The account on the platform. Secrets are in files that only you can read.\n%s:\n  %s\n",
		p.Workspace, p.Platform.Name, id, p.Platform.Name, strings.Join(block, "\n  "))
	if policy, _ := p.Platform.lines(p.Workspace, "", "policy"); len(policy) > 0 {
		text += "\n# Who may talk to the bot.\npolicy:\n  " + strings.Join(policy, "\n  ") + "\n"
	}
	return append(append(files, File{path, text}), secrets...), nil
}

// written returns lines as they stand in a file.
func written(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(lines, "\n") + "\n"
}

// joined returns a text with lines at its end.
func joined(text string, lines []string) string {
	if len(lines) > 0 && text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text + written(lines)
}

// schemaLine is the head of a file, which tells editors where the schema is that parley schema prints.
func schemaLine(folder string) string {
	return "# yaml-language-server: $schema=" + folder + "parley.schema.json\n# Written by parley init. For an editor that completes and checks the keys: parley schema >parley.schema.json\n"
}

// file returns the path of the workspace's file, which the pattern of the configuration must match.
func (p Plan) file() (string, error) {
	pattern := "workspaces/*.yaml"
	if p.Onto != nil {
		pattern = p.Onto.Config.Glob
	}
	path := strings.Replace(filepath.ToSlash(filepath.Clean(pattern)), "*", p.Workspace, 1)
	if filepath.IsAbs(path) || strings.HasPrefix(path, "../") || strings.ContainsAny(path, `*?[\\`) || path == pattern {
		return "", fmt.Errorf("the key workspaces of %s is %s, for which there is no obvious name of a file: write the workspace's file by hand", config.File, pattern)
	}
	return path, nil
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
// that of the secrets as the file of the block names it; block is empty for that of the platform or the agent.
func (p Part) lines(owner, folder, block string) (lines []string, secrets []File) {
	for _, f := range p.Fields {
		value := p.Answers[f.Key]
		if f.Block != block || value == "" || f.Unasked && value == f.Default {
			continue
		}
		if f.List {
			lines = append(lines, f.Key+": "+listed(value))
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
		lines = append(lines, fmt.Sprintf(line, value))
	}
	return lines, secrets
}

// listed returns a text with commas as a list of YAML.
func listed(text string) string {
	var items []string
	for one := range strings.SplitSeq(text, ",") {
		if one = strings.TrimSpace(one); one != "" {
			items = append(items, `"`+yamlText(one)+`"`)
		}
	}
	return "[" + strings.Join(items, ", ") + "]"
}

// Existing returns the files of the plan that are in a folder already.
func (p Plan) Existing(dir string) (paths []string) {
	files, _ := p.Files() // Write reports the error
	for _, f := range files {
		if p.Onto != nil && f.Path == config.File {
			continue
		}
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
	files, err := p.Files()
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		path := filepath.Join(dir, f.Path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return paths, err
		}
		if err := replace(path, f.Content); err != nil {
			return paths, err
		}
		paths = append(paths, path)
	}
	if p.Onto == nil {
		return paths, nil
	}
	if _, err := config.Load(filepath.Join(dir, config.File)); err != nil {
		for _, path := range paths {
			if filepath.Base(path) == config.File {
				err = errors.Join(err, replace(path, p.Onto.text))
			} else {
				err = errors.Join(err, os.Remove(path))
			}
		}
		return nil, fmt.Errorf("nothing is changed, because the files would have faults:\n%w", err)
	}
	return paths, nil
}

// replace writes a file that only its owner may read, as a whole or not at all.
func replace(path, content string) error {
	draft, err := os.CreateTemp(filepath.Dir(path), ".parley-*") // its mode is 0600
	if err != nil {
		return err
	}
	if before, err := os.Stat(path); err == nil { // the daemon may be another user
		owner := before.Sys().(*syscall.Stat_t)
		if err := errors.Join(draft.Chmod(before.Mode().Perm()), draft.Chown(int(owner.Uid), int(owner.Gid))); err != nil {
			return errors.Join(err, draft.Close(), os.Remove(draft.Name()))
		}
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
	// Unasked says that nobody answered, so that the answers are not tried.
	Unasked bool `json:"unasked"`
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
			found = append(found, Finding{f.Key, f.Words, true, false})
		}
		return found, nil
	}
	if err != nil {
		return nil, err
	}
	for _, f := range doctor.Ask(ctx, c) {
		if f.Workspace != "" || f.Agent != "" {
			found = append(found, Finding{f.Key, f.Words, f.Fault, f.Unasked})
		}
	}
	return found, nil
}
