package setup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"parley/config"
)

// Base is a configuration that a plan extends. Its comments and its order stay.
type Base struct {
	Config *config.Config
	text   string // of parley.yaml
}

// Open returns the configuration in a folder, and nil if there is none. Faults of its files are an error.
func Open(dir string) (*Base, error) {
	path := filepath.Join(dir, config.File)
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	c, err := config.Load(path)
	return &Base{c, string(raw)}, err
}

// Agents returns the configured agents as choices, by their ids.
func (b *Base) Agents() (all []Choice) {
	for _, a := range b.Config.Agents {
		all = append(all, Choice{ID: a.ID, Title: fmt.Sprintf("%s, which is configured (%s)", a.ID, a.Kind)})
	}
	return all
}

// main returns the values of the keys of parley.yaml that a platform may ask for, as far as the file has them.
func (b *Base) main() map[string]string {
	var keys map[string]any
	if yaml.Unmarshal([]byte(b.text), &keys) != nil {
		return nil
	}
	all := map[string]string{"listen": b.Config.Listen, "public_url": b.Config.PublicURL}
	for key := range all {
		if _, ok := keys[key]; !ok {
			delete(all, key)
		}
	}
	return all
}

// isFree reports whether no agent has an id.
func (b *Base) isFree(id string) bool {
	return !slices.ContainsFunc(b.Config.Agents, func(a config.Agent) bool { return a.ID == id })
}

// withAgent returns the text of parley.yaml with one more agent at the end of its list. lines are the keys of the agent.
func (b *Base) withAgent(lines []string) (string, error) {
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(b.text), &document); err != nil {
		return "", err
	}
	list := value(&document, "agents")
	flow := "{" + strings.Join(lines, ", ") + "}"
	var edits []string
	switch {
	case list == nil:
		text := strings.TrimRight(b.text, "\n")
		if text != "" {
			text += "\n"
		}
		text += "agents:\n" + item("  ", lines)
		uses := func(w config.Workspace) bool { return w.Agent == "echo" && !config.IsLocal(w.Config) }
		if slices.ContainsFunc(b.Config.Workspaces, uses) { // the default agent, which a list replaces
			text += item("  ", []string{"id: echo", "kind: echo"})
		}
		return text, nil
	case list.Style&yaml.FlowStyle != 0:
		for at := range b.text {
			if b.text[at] == ']' {
				edits = append(edits, b.text[:at]+", "+flow+b.text[at:], b.text[:at]+flow+b.text[at:])
			}
		}
	default:
		all := strings.SplitAfter(strings.TrimRight(b.text, "\n")+"\n", "\n")
		for at := list.Line; at < len(all); at++ {
			edits = append(edits, strings.Join(all[:at], "")+item(strings.Repeat(" ", list.Column-1), lines)+strings.Join(all[at:], ""))
		}
	}
	for _, text := range edits {
		if b.adds(text, flow) {
			return text, nil
		}
	}
	return "", fmt.Errorf("%s can't be changed: add %s to its agents", config.File, flow)
}

// item returns an item of a list.
func item(indent string, lines []string) string {
	return indent + "- " + strings.Join(lines, "\n"+indent+"  ") + "\n"
}

// adds reports whether a text has all that parley.yaml has, and one more agent at the end.
func (b *Base) adds(text, agent string) bool {
	var before, after map[string]any
	var added any
	for from, into := range map[string]any{b.text: &before, text: &after, agent: &added} {
		if yaml.Unmarshal([]byte(from), into) != nil {
			return false
		}
	}
	agents, _ := before["agents"].([]any)
	before["agents"] = append(agents, added)
	return reflect.DeepEqual(before, after)
}

// value returns the value of a key of a document; nil for none.
func value(document *yaml.Node, key string) *yaml.Node {
	if len(document.Content) == 0 || document.Content[0].Kind != yaml.MappingNode {
		return nil
	}
	pairs := document.Content[0].Content
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i].Value == key && pairs[i+1].Kind == yaml.SequenceNode {
			return pairs[i+1]
		}
	}
	return nil
}
