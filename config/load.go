package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"parley/ingest/attach"
)

// File is the default name of the configuration.
const File = "parley.yaml"

// Load reads a configuration and the files of its workspaces. If the path is empty, it
// reads File in the working directory, or returns Default if there is no such file. Every
// error is a Faults, with all faults of all files.
func Load(path string) (*Config, error) {
	c, _, err := LoadPlaces(path)
	return c, err
}

// LoadPlaces is Load for a caller that has further faults to report in the files.
func LoadPlaces(path string) (*Config, Places, error) {
	c, places, faults := ReadPlaces(path)
	if len(faults) > 0 {
		return nil, nil, faults
	}
	return c, places, nil
}

// Read is Load for a caller that asks a running daemon, for which a fault of the files is no obstacle. Keys with
// faults have their defaults, and a workspace or an agent with a fault may lack its Config. If parley.yaml is not YAML, its blocks
// that name the daemon's socket and address are read alone.
func Read(path string) (*Config, Faults) {
	c, _, faults := ReadPlaces(path)
	return c, faults
}

// ReadPlaces is Read for a caller that has further faults to report in the files.
func ReadPlaces(path string) (*Config, Places, Faults) {
	l := newLoader(path)
	c := Default()
	if _, err := os.Stat(File); path != "" || !errors.Is(err, fs.ErrNotExist) {
		c = l.config()
	} else {
		if unread, _ := filepath.Glob(c.Glob); len(unread) > 0 {
			l.main.warn("", "does not exist, so "+unread[0]+" is not read: make the file, which may be empty")
		}
		defer func() { l.main.name = "" }() // a later fault has no place
	}
	if c == nil {
		c = readBlocks(path)
	}
	if len(l.faults) == 0 {
		c.Warnings = l.warnings(c)
	}
	l.places[""] = l.main
	c.places = l.places
	return c, l.places, l.faults
}

func newLoader(path string) *loader {
	return &loader{unique: unique{}, places: Places{}, main: newFile(cmp.Or(path, File))}
}

// readBlocks reads the blocks that name the socket and the address of the daemon in a file that is no YAML as a whole.
func readBlocks(path string) *Config {
	l := newLoader(path)
	l.main.blocks = []string{"store", "listen", "operator", "workspaces"}
	if c := l.config(); c != nil {
		return c
	}
	c := Default()
	c.Store.Path = l.main.resolve(c.Store.Path)
	return c
}

// loader reads one configuration.
type loader struct {
	faults Faults
	// unique holds the ids and accounts of the workspaces read so far.
	unique unique
	main   *file // parley.yaml
	places Places
}

// config reads parley.yaml, then the workspaces.
func (l *loader) config() *Config {
	f, c := l.main, defaults()
	node, ok := f.parse()
	if !ok {
		l.faults = f.faults
		return nil
	}
	values := f.mapping(node, "", reflect.TypeFor[Config]())
	if f.has("agents") {
		c.Agents = f.agents(takeList(values, "agents"))
	}
	if f.has("attachments.s3") { // even if it has no value
		c.Attachments.S3 = new(attach.S3)
	}
	f.decode("", c, values)
	f.report(c.faults())
	if c.Store.Engine == SQLite {
		c.Store.Path = f.resolve(c.Store.Path)
	}
	c.Attachments.Dir = f.resolve(c.Attachments.Dir)
	c.OperatorAPI.Dir = f.resolve(c.OperatorAPI.Dir)
	files := []*file{f}
	for _, name := range f.workspaces(c.Glob) {
		w := newFile(name)
		files = append(files, w)
		c.Workspaces = append(c.Workspaces, l.workspace(w, c.Agents))
	}
	l.checkReads(files[0], files[1:], c)
	if f.has("local") && !c.Local && len(files) == 1 && !f.hasFault("workspaces") {
		f.fault(f.line("local"), "local", "leaves no workspace: write a file for one, or remove the key to run the built-in workspace")
	}
	if c.keepsLocal() && len(c.Agents) > 0 {
		c.Workspaces = append(c.Workspaces, local(c.Agents[0].ID))
	}
	for _, f := range files {
		l.faults = append(l.faults, f.sorted()...)
	}
	return c
}

// agentKeys are the keys of an agent of any kind.
var agentKeys = []string{"id", "kind", "show", "files", "quiet_reply", "image_hosts", "workstreams", "tools"}

// agents reads the list of agents. A key of another kind of agent is a fault.
func (f *file) agents(items []map[string]any) []Agent {
	agents := make([]Agent, len(items))
	for i, item := range items {
		at := fmt.Sprintf("agents[%d]", i)
		agents[i] = defaultAgent()
		f.decode(at, &agents[i], pick(item, agentKeys...))
		kind, ok := Kind(agents[i].Kind)
		if !ok {
			continue
		}
		agents[i].Config = kind.Config()
		own := keys(reflect.TypeOf(agents[i].Config).Elem())
		var check checks
		for _, key := range keys(reflect.TypeFor[Agent]()) {
			_, given := item[key]
			check.require(!given || slices.Contains(agentKeys, key) || slices.Contains(own, key), join(at, key),
				fmt.Sprintf("is not a key of an agent of kind %s, whose keys are %s: remove it", kind.Name, strings.Join(slices.Concat(agentKeys, own), ", ")))
		}
		f.report(check.faults)
		f.decode(at, agents[i].Config, pick(item, own...))
	}
	return agents
}

// decode lays checked values over the defaults in into.
func (f *file) decode(path string, into any, layers ...map[string]any) {
	if decode(into, layers...) != nil { // the error's text would print values
		f.fault(f.line(path), path, "could not be read although the type of each value is right: please report this")
	}
}

// workspaces returns the names of the files that match the pattern, in order. As in a shell, a
// hidden file, such as an editor's lock, matches only a pattern with the dot. It is a fault if no file
// matches a pattern that the file gives, or if only files *.yml are there: they were meant.
func (f *file) workspaces(pattern string) []string {
	if f.hasFault("workspaces") {
		return nil
	}
	if !filepath.IsAbs(pattern) {
		pattern = filepath.Join(quoteGlob(filepath.Dir(f.name)), pattern)
	}
	var check checks
	names, err := filepath.Glob(pattern)
	check.require(err == nil, "workspaces", "must be a pattern of file names, such as workspaces/*.yaml")
	hidden := func(name string) bool { return strings.HasPrefix(filepath.Base(name), ".") }
	names = slices.DeleteFunc(names, func(name string) bool {
		return name == filepath.Clean(f.name) || hidden(name) && !hidden(pattern)
	})
	var other []string
	if base, ok := strings.CutSuffix(pattern, ".yaml"); ok {
		other, _ = filepath.Glob(base + ".yml")
		other = slices.DeleteFunc(other, hidden)
	}
	for _, name := range other {
		f.warn("workspaces", name+" is not read: give it the extension .yaml")
	}
	meant := f.has("workspaces") || len(other) > 0
	words := fmt.Sprintf("no file matches %s: write one for each workspace, or remove the key to run the built-in workspace", pattern)
	if len(other) > 0 {
		words = fmt.Sprintf("no file matches %s, and %s is not read: give it the extension .yaml", pattern, other[0])
	}
	if _, err := os.ReadDir(filepath.Dir(pattern)); err != nil && !errors.Is(err, fs.ErrNotExist) { // Glob ignores it
		meant, words = true, fmt.Sprintf("the folder %s can't be read: %v", filepath.Dir(pattern), cause(err))
	}
	check.require(len(names) > 0 || !meant, "workspaces", words)
	f.report(check.faults)
	return names
}

var globSigns = regexp.MustCompile(`[*?\[\\]`)

// quoteGlob returns a pattern that matches only the folder dir.
func quoteGlob(dir string) string {
	return globSigns.ReplaceAllString(dir, `\$0`)
}

// takeList removes a list of mappings from values and returns it.
func takeList(values map[string]any, key string) []map[string]any {
	items, _ := values[key].([]any)
	delete(values, key)
	list := make([]map[string]any, len(items))
	for i, item := range items {
		list[i], _ = item.(map[string]any)
	}
	return list
}
