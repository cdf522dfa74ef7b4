package config

import (
	"cmp"
	"encoding"
	"fmt"
	"net/url"
	"reflect"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"parley/adapters"
	"parley/adapters/agent"
	"parley/config/secret"
)

const noAlias = "has a value that begins with & or *, which YAML reads as a reference: put the value in quotes"

// replaced are the words of a fault of a key that has another name.
var replaced = map[string]string{
	"allow_bot_messages": "is replaced by policy.bot_messages: write bot_messages: run for true, or bot_messages: ignore for false",
}

// mapping checks a mapping against a struct and returns its values by key, each in the
// type of its setting. It leaves out values with a fault.
func (f *file) mapping(node *yaml.Node, path string, t reflect.Type) map[string]any {
	values := map[string]any{}
	if isNull(node) {
		return values
	}
	if node.Kind != yaml.MappingNode {
		f.fault(node.Line, path, "must be a mapping with the keys "+strings.Join(keys(t), ", "))
		return values
	}
	first := map[string]int{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		setting, known := field(t, key.Value)
		at := join(path, key.Value)
		if !known {
			at = join(path, printable(key))
		}
		if key.Kind != yaml.ScalarNode || !known {
			f.fault(key.Line, at, cmp.Or(replaced[key.Value], "is not a key here; the keys are "+strings.Join(keys(t), ", ")))
			continue
		}
		if line, doubled := first[key.Value]; doubled {
			// The check of the first value goes on, so at does not become a faulty key.
			f.faults = append(f.faults, Fault{f.name, key.Line, at, fmt.Sprintf("is given twice, first in line %d: keep one of them", line)})
			continue
		}
		first[key.Value], f.lines[at] = key.Line, key.Line
		if read, ok := f.value(value, at, setting); ok {
			values[key.Value] = read
		}
	}
	return values
}

// value checks one value against the type of its setting.
func (f *file) value(node *yaml.Node, path string, t reflect.Type) (any, bool) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case node.Kind == yaml.AliasNode || node.Anchor != "":
		f.fault(node.Line, path, noAlias)
	case node.Style&yaml.TaggedStyle != 0:
		f.fault(node.Line, path, "has a value that begins with !, which YAML reads as a tag: put the value in quotes")
	case t == reflect.TypeFor[Store]() && node.Kind == yaml.MappingNode:
		return f.store(node, path)
	case t.Kind() == reflect.Struct && !isScalar(t):
		return f.mapping(node, path, t), true
	case t == reflect.TypeFor[map[string]secret.Value]() && node.Kind == yaml.MappingNode:
		return f.secretMap(node, path), true
	case isNull(node):
		f.fault(f.line(path), path, "has no value: write one or remove the key")
	case t.Kind() == reflect.Slice && node.Kind == yaml.SequenceNode:
		return f.sequence(node, path, t), true
	case t.Kind() == reflect.Slice:
		f.fault(node.Line, path, "must be a list")
	case node.Kind != yaml.ScalarNode:
		f.fault(node.Line, path, "must be a single value, not a list or a mapping")
	default:
		return f.scalar(node, path, t)
	}
	return nil, false
}

// secretMap checks a mapping of names to secrets, such as the variables of an environment. It leaves out values with a fault.
func (f *file) secretMap(node *yaml.Node, path string) map[string]secret.Value {
	values := map[string]secret.Value{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		name := node.Content[i]
		if _, given := values[name.Value]; given || name.Kind != yaml.ScalarNode {
			f.fault(name.Line, path, "must have each name once")
			continue
		}
		at := join(path, printable(name))
		f.lines[at] = name.Line
		if read, ok := f.value(node.Content[i+1], at, reflect.TypeFor[secret.Value]()); ok {
			values[name.Value], _ = read.(secret.Value)
		}
	}
	return values
}

// sequence checks a list of texts or of mappings. An item with a fault stays in the list, empty, so
// that the other items keep their numbers.
func (f *file) sequence(node *yaml.Node, path string, t reflect.Type) []any {
	var empty any = map[string]any{}
	if t.Elem().Kind() == reflect.String {
		empty = ""
	}
	items := make([]any, len(node.Content))
	for i, item := range node.Content {
		at := fmt.Sprintf("%s[%d]", path, i)
		f.lines[at] = item.Line
		items[i] = empty
		if read, ok := f.value(item, at, t.Elem()); ok {
			items[i] = read
		}
	}
	return items
}

// scalar checks a single value and returns it in the type of its setting.
func (f *file) scalar(node *yaml.Node, path string, t reflect.Type) (any, bool) {
	f.included = nil
	text, replaced, faults := f.substitute(node.Value)
	for _, fault := range faults {
		f.fault(node.Line, path, fault.Error())
	}
	if len(faults) > 0 {
		return nil, false
	}
	value, err := scalar{text: text, tag: node.ShortTag(), replaced: replaced}.read(t)
	if err != nil {
		f.fault(node.Line, path, err.Error())
		return nil, false
	}
	if replaced {
		f.written[path] = node.Value
	}
	if isSecret(t, text) {
		if !replaced {
			f.secrets[f.name] = ""
		}
		for _, name := range f.included {
			f.secrets[name] = path
		}
	}
	return value, true
}

// isSecret reports whether a setting of a type is a secret, or an address with a password.
func isSecret(t reflect.Type, text string) bool {
	if t == reflect.TypeFor[secret.Value]() {
		return text != ""
	}
	address, err := url.Parse(text)
	if err != nil || address.User == nil {
		return false
	}
	_, has := address.User.Password()
	return has
}

func isNull(node *yaml.Node) bool {
	return node == nil || node.Kind == yaml.ScalarNode && node.ShortTag() == "!!null"
}

// isScalar reports whether a file gives a setting of this type as a single value.
func isScalar(t reflect.Type) bool {
	_, ok := reflect.New(t).Interface().(encoding.TextUnmarshaler)
	return ok || t.Kind() != reflect.Struct && t.Kind() != reflect.Slice
}

// field returns the type of the setting that has the key in a struct.
func field(t reflect.Type, key string) (reflect.Type, bool) {
	found, ok := find(settings(reflect.Zero(t)), func(s setting) bool { return s.key == key })
	if !ok {
		return nil, false
	}
	return found.value.Type(), true
}

// keys returns a struct's keys in the order of its fields.
func keys(t reflect.Type) (names []string) {
	for _, s := range settings(reflect.Zero(t)) {
		names = append(names, s.key)
	}
	return names
}

// setting is one setting of a struct.
type setting struct {
	key   string
	value reflect.Value
}

// settings returns every setting of a struct. Of a platform and of a kind of agent, these are its own
// settings if the struct has them, else those of each platform and of each kind.
func settings(v reflect.Value) (all []setting) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		key, option, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		switch {
		case field.Type == reflect.TypeFor[adapters.Config]():
			for _, p := range platforms {
				block, given := reflect.ValueOf(p.Config()), v.Field(i)
				switch {
				case given.IsNil():
					all = append(all, setting{string(p.Name), block})
				case given.Elem().Type() == block.Type():
					all = append(all, setting{string(p.Name), given.Elem()})
				}
			}
		case field.Type == reflect.TypeFor[agent.Config]() && !v.Field(i).IsNil():
			all = append(all, settings(v.Field(i).Elem().Elem())...)
		case field.Type == reflect.TypeFor[agent.Config]():
			for _, k := range kinds { // several kinds have the same keys
				for _, s := range settings(reflect.ValueOf(k.Config()).Elem()) {
					if _, ok := find(all, func(a setting) bool { return a.key == s.key }); !ok {
						all = append(all, s)
					}
				}
			}
		case option == "inline":
			all = append(all, settings(v.Field(i))...)
		case key != "-":
			all = append(all, setting{cmp.Or(key, strings.ToLower(field.Name)), v.Field(i)})
		}
	}
	return all
}

var plainKey = regexp.MustCompile(`^[A-Za-z][A-Za-z_-]{0,31}$`)

// printable returns an unknown key as a fault may print it: "?" unless it looks like a
// key. With a comma or colon in the wrong place, a secret can become a key.
func printable(key *yaml.Node) string {
	if key.Kind == yaml.ScalarNode && plainKey.MatchString(key.Value) {
		return key.Value
	}
	return "?"
}

// join returns the path of a key in the mapping at path.
func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
