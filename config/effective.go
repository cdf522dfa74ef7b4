package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"parley/config/secret"
	"parley/ingest"
)

// Setting is the effective value of one key, with its origin.
type Setting struct {
	// Key is its path in the file, such as "policy.max_age" or "channels[0].agent".
	Key string `json:"key"`
	// Value is as a file writes it, with its references such as ${NAME}. A secret is "[secret]", and "" if it is unset.
	Value string `json:"value"`
	// File and Line are the place of the key. They are "" and 0 for a default.
	File string `json:"file"`
	Line int    `json:"line"`
}

// String returns the key, the value and the origin in one line.
func (s Setting) String() string {
	origin := "default"
	if s.File != "" {
		origin = fmt.Sprintf("%s:%d", s.File, s.Line)
	}
	return fmt.Sprintf("%s: %s (%s)", s.Key, s.Value, origin)
}

// Main returns the effective values of the keys of parley.yaml, in the order of the reference.
func (c *Config) Main() (all []Setting) {
	f := c.places.file("")
	for _, s := range settings(reflect.ValueOf(*c)) {
		switch {
		case s.key == "store":
			all = append(all, f.storeSettings(c.Store)...)
		default:
			all = append(all, f.effective(s.key, s.value)...)
		}
	}
	return all
}

// Workspace returns a configured workspace, and nil for an unknown id.
func (c *Config) Workspace(id string) *Workspace {
	i := slices.IndexFunc(c.Workspaces, func(w Workspace) bool { return w.ID == id })
	if i < 0 {
		return nil
	}
	return &c.Workspaces[i]
}

// Effective returns the effective values of the keys of a workspace in a channel: the keys of its file
// with the values that Workspace.Channel gives for the channel ids. A key that the channel's entry sets
// has the path of that entry. Without channel ids, these are the workspace's own values, and then those
// that its channels' entries set. The list is empty for an unknown workspace.
func (c *Config) Effective(workspace string, channels ...string) (all []Setting) {
	w := c.Workspace(workspace)
	if w == nil {
		return nil
	}
	f := c.places.file(workspace)
	of := func(w Workspace) []Setting { return f.effective("", reflect.ValueOf(w)) }
	if len(channels) == 0 {
		all = of(*w)
		for _, id := range slices.SortedFunc(maps.Keys(f.entries), func(a, b string) int { return f.line(f.entries[a]) - f.line(f.entries[b]) }) {
			all = append(all, f.own(f.entries[id], id, w.Channels[id])...)
		}
		return all
	}
	shown, own := *w, map[string]Setting{}
	if i := slices.IndexFunc(channels, func(id string) bool { return f.entries[id] != "" }); i >= 0 {
		id := channels[i]
		shown.Settings = w.Channels[id]
		for _, s := range f.own(f.entries[id], id, shown.Settings) {
			own[strings.TrimPrefix(s.Key, f.entries[id]+".")] = s
		}
	}
	all = of(shown)
	for i, s := range all {
		if one, ok := own[s.Key]; ok && s.Key != "id" {
			all[i] = one
		}
	}
	return all
}

// revealed returns the configuration with the values behind references and masks in its settings. They are for comparisons alone.
func (c *Config) revealed() *Config {
	open := *c
	open.places = Places{}
	for id := range c.places {
		f := *c.places[id]
		f.reveals = true
		open.places[id] = &f
	}
	return &open
}

// own returns the settings that a channel's entry sets.
func (f *file) own(entry, id string, s Settings) []Setting {
	all := f.effective(entry, reflect.ValueOf(channel{ID: id, Settings: s}))
	return slices.DeleteFunc(all, func(s Setting) bool { return !f.has(s.Key) })
}

// Setting returns the effective value of one key of a workspace in a channel, such as
// "policy.require_mention"; see Effective. It returns false for an unknown workspace or key.
func (c *Config) Setting(workspace, key string, channels ...string) (Setting, bool) {
	return find(c.Effective(workspace, channels...), func(s Setting) bool {
		return s.Key == key || strings.HasPrefix(s.Key, "channels[") && strings.HasSuffix(s.Key, "]."+key)
	})
}

// file returns the file of a workspace, or parley.yaml; one without any key for a configuration that
// no file gives.
func (p Places) file(workspace string) *file {
	if f := p[workspace]; f != nil {
		return f
	}
	return newFile("")
}

// effective returns the settings at a path, below which v is.
func (f *file) effective(path string, v reflect.Value) (all []Setting) {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() && v.Type().Elem().Kind() == reflect.Bool { // a switch that is on unless a file turns it off
			v = reflect.ValueOf(true)
		} else {
			v = v.Elem()
		}
	}
	isList := v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct
	switch {
	case !v.IsValid(): // an optional block that no file has
	case isList:
		for i := range v.Len() {
			all = append(all, f.effective(fmt.Sprintf("%s[%d]", path, i), v.Index(i))...)
		}
	case isScalar(v.Type()) || v.Kind() == reflect.Slice:
		value := text(v)
		if named, ok := v.Interface().(map[string]secret.Value); ok {
			value = names(named, f.reveals)
		}
		if hidden, ok := v.Interface().(secret.Value); ok && f.reveals {
			value = hidden.Reveal()
		}
		return []Setting{f.setting(path, value)}
	default:
		for _, s := range settings(v) {
			all = append(all, f.effective(join(path, s.key), s.value)...)
		}
	}
	return all
}

// names returns a mapping of names to secrets as a file writes it.
func names(values map[string]secret.Value, reveals bool) string {
	if values == nil {
		return ""
	}
	var list []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		value := masked
		if reveals {
			value = values[name].Reveal()
		}
		list = append(list, name+": "+value)
	}
	return "{" + strings.Join(list, ", ") + "}"
}

// setting returns a setting whose value has a text.
func (f *file) setting(path, value string) Setting {
	s := Setting{Key: path, Value: f.shown(path, value)}
	if f.has(path) {
		s.File, s.Line = f.name, f.lines[path]
	}
	return s
}

// shown returns the text of the value of a key with its references, if it has any. A mask stays.
func (f *file) shown(path, value string) string {
	if written, ok := f.written[path]; ok && value != masked && !f.reveals {
		return written
	}
	return value
}

// storeSettings returns the settings of the store in the form in which the file has it.
func (f *file) storeSettings(s Store) []Setting {
	place := "sqlite:" + s.Path
	switch {
	case s.Engine == Postgres && f.reveals:
		place = s.URL.Reveal()
	case s.Engine == Postgres:
		place = masked
	}
	if !f.has("store.url") {
		return []Setting{f.setting("store", place)}
	}
	return slices.Concat([]Setting{f.setting("store.url", place)}, f.effective("store.listen_url", reflect.ValueOf(s.ListenURL)),
		f.effective("store.connections", reflect.ValueOf(s.Connections)))
}

// masked is the text of a value that is a secret, as secret.Value has it.
const masked = "[secret]"

// text returns a value as a file writes it. An unset secret and a nil list have no text.
func text(v reflect.Value) string {
	switch value := v.Interface().(type) {
	case secret.Value:
		if value.IsZero() {
			return ""
		}
		return masked
	case ingest.Rate:
		if value.Runs == 0 {
			return "0"
		}
		return fmt.Sprintf("%d/%s", value.Runs, short(value.Per))
	case time.Duration:
		return short(value)
	}
	if v.Kind() != reflect.Slice {
		return mask(v.Type(), fmt.Sprint(v.Interface()))
	}
	if v.IsNil() {
		return ""
	}
	items := make([]string, v.Len())
	for i := range items {
		items[i] = mask(v.Type().Elem(), v.Index(i).String())
	}
	return "[" + strings.Join(items, ", ") + "]"
}

// mask replaces an address with a password.
func mask(t reflect.Type, text string) string {
	if isSecret(t, text) {
		return masked
	}
	return text
}

// short returns a duration as a file writes it, such as 30d, 24h or 1m30s.
func short(d time.Duration) string {
	const day = 24 * time.Hour
	if d > day && d%day == 0 {
		return fmt.Sprintf("%dd", d/day)
	}
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
