package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"

	"parley/adapters/agent/openai"
	"parley/ingest/attach"
	"parley/ingest/event"
)

// File is the configuration's name where none is given.
const File = "parley.yaml"

// Load reads a configuration and the workspaces' files it names. An empty path
// means File in the working directory, or, where there is none, Default. An
// error is Faults, with every fault of every file.
func Load(path string) (*Config, error) {
	c, _, err := LoadPlaces(path)
	return c, err
}

// LoadPlaces is Load for who has more to say about what stands in the files.
func LoadPlaces(path string) (*Config, Places, error) { return load(path, os.LookupEnv) }

func load(path string, lookup func(string) (string, bool)) (*Config, Places, error) {
	if path == "" {
		if _, err := os.Stat(File); errors.Is(err, fs.ErrNotExist) {
			return Default(), Places{}, nil
		}
		path = File
	}
	l := loader{lookup: lookup, taken: map[string]string{}, places: map[string]*file{}}
	c := l.config(path)
	if len(l.faults) > 0 {
		return nil, Places{}, l.faults
	}
	return c, Places{l.places}, nil
}

// loader reads one configuration.
type loader struct {
	lookup func(string) (string, bool)
	faults Faults
	// taken tells where what only one workspace can have was first seen: its id,
	// its account.
	taken map[string]string
	// places are the workspaces' files, by id.
	places map[string]*file
}

func (l *loader) file(name string) *file {
	return &file{name: name, lookup: l.lookup, lines: map[string]int{}}
}

// config reads parley.yaml, then the workspaces.
func (l *loader) config(name string) *Config {
	f, c := l.file(name), defaults()
	node, ok := f.open()
	if !ok {
		l.faults = f.faults
		return nil
	}
	values := f.mapping(node, "", reflect.TypeFor[Config]())
	if f.has("agents") {
		c.Agents = f.agents(take(values, "agents"))
	}
	if f.has("attachments.s3") { // though nothing may be said of it
		c.Attachments.S3 = new(attach.S3)
	}
	f.decode("", c, values)
	f.judge(c.faults())
	if c.Store.Engine == SQLite {
		c.Store.Path = f.resolve(c.Store.Path)
	}
	c.Attachments.Dir = f.resolve(c.Attachments.Dir)
	names := f.workspaces(c.Glob)
	l.faults = append(l.faults, f.sorted()...)

	for _, name := range names {
		w := l.workspace(name, c.Agents)
		c.Workspaces = append(c.Workspaces, w)
	}
	return c
}

// agents reads the list of agents.
func (f *file) agents(items []map[string]any) []Agent {
	agents := make([]Agent, len(items))
	for i, item := range items {
		at := fmt.Sprintf("agents[%d]", i)
		if item["kind"] == KindOpenAI {
			agents[i].OpenAI = openai.DefaultConfig()
		}
		f.decode(at, &agents[i], item)
		if agents[i].Kind != KindEcho {
			continue
		}
		for key := range item {
			if key != "id" && key != "kind" {
				f.fault(f.line(at+"."+key), at+"."+key, "is not a key of an echo agent, which has id and kind alone")
			}
		}
	}
	return agents
}

// decode lays checked values over the defaults in into.
func (f *file) decode(path string, into any, layers ...map[string]any) {
	if decode(into, layers...) != nil { // its words would print values
		f.fault(f.line(path), path, "passed the check of its types, but does not fit them: please report this")
	}
}

// workspaces lists the files that the pattern names, in order.
func (f *file) workspaces(pattern string) []string {
	if f.faulty("workspaces") {
		return nil
	}
	if !filepath.IsAbs(pattern) {
		pattern = filepath.Join(quoteGlob(filepath.Dir(f.name)), pattern)
	}
	names, err := filepath.Glob(pattern)
	if err != nil {
		f.fault(f.line("workspaces"), "workspaces", "is not a pattern of file names such as workspaces/*.yaml")
		return nil
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == filepath.Clean(f.name) })
	if len(names) == 0 {
		f.fault(f.line("workspaces"), "workspaces",
			fmt.Sprintf("no file matches %s: write one for each workspace, or remove %s to run with the built-in one", pattern, f.name))
	}
	return names
}

var globSigns = regexp.MustCompile(`[*?\[\\]`)

// quoteGlob makes a folder's name match itself alone.
func quoteGlob(dir string) string {
	return globSigns.ReplaceAllString(dir, `\$0`)
}

// take removes a list of mappings from values and returns it.
func take(values map[string]any, key string) []map[string]any {
	items, _ := values[key].([]any)
	delete(values, key)
	list := make([]map[string]any, len(items))
	for i, item := range items {
		list[i], _ = item.(map[string]any)
	}
	return list
}

// prefixed puts a component's faults under its key.
func prefixed(prefix string, faults event.FieldErrors) event.FieldErrors {
	for i := range faults {
		faults[i].Field = prefix + "." + faults[i].Field
	}
	return faults
}
