package config

import (
	_ "embed"
	"encoding"
	"reflect"
	"regexp"
	"time"

	"parley/adapters"
	"parley/adapters/web/access"
	"parley/config/secret"
	"parley/ingest"
	"parley/ingest/attach"
)

//go:embed README.md
var reference string

// referenceRow matches a row of the tables of keys: the key, its default, its unit and its meaning.
var referenceRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([^|]*) \\|(.*)\\|(.*)\\|$")

// withReference matches a text with a reference. A reference can replace any value.
const withReference = `\$\{`

// The files of a configuration, as names of schemas.
const (
	SchemaMain      = "parley"
	SchemaWorkspace = "workspace"
)

// Schema returns the JSON Schema of the configuration's files: parley.yaml and a workspace's file are its
// definitions SchemaMain and SchemaWorkspace, and it admits either. It knows keys, types and simple forms;
// Load also checks what they mean together.
func Schema() map[string]any {
	s := schema{}
	for _, row := range referenceRow.FindAllStringSubmatch(reference, -1) {
		s[row[1]] = row[4]
	}
	main := defaults()
	main.Attachments.S3 = new(attach.S3)
	workspace := s.object("", reflect.ValueOf(workspaceFile{Workspace: NewWorkspace("", "", "")}))
	workspace["required"] = []string{"id", "platform"}
	return map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"title":   "A configuration file of Parley",
		"anyOf":   []any{map[string]any{"$ref": "#/$defs/" + SchemaMain}, map[string]any{"$ref": "#/$defs/" + SchemaWorkspace}},
		"$defs":   map[string]any{SchemaMain: s.object("", reflect.ValueOf(*main)), SchemaWorkspace: workspace},
	}
}

// schema is the meaning of each key in the reference.
type schema map[string]string

// object returns the schema of a mapping at a path, whose keys are the settings of the struct v.
func (s schema) object(path string, v reflect.Value) map[string]any {
	properties := map[string]any{}
	for _, one := range settings(v) {
		properties[one.key] = s.property(join(path, one.key), one.value)
	}
	return map[string]any{"type": []string{"object", "null"}, "additionalProperties": false, "properties": properties}
}

// property returns the schema of a key with its default.
func (s schema) property(at string, v reflect.Value) map[string]any {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() && v.Type().Elem().Kind() == reflect.Bool { // a switch that is on unless a file turns it off
			v = reflect.ValueOf(true)
		} else {
			v = v.Elem()
		}
	}
	var p map[string]any
	switch t := v.Type(); {
	case t == reflect.TypeFor[Store]():
		long := s.object(at, reflect.ValueOf(storeKeys{Connections: defaultConnections}))
		p = map[string]any{"anyOf": []any{map[string]any{"type": "string"}, long}}
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		p = map[string]any{"type": "array", "items": s.object(at+"[]", entry(t.Elem()))}
	case t.Kind() == reflect.Map:
		p = map[string]any{"type": "object", "additionalProperties": map[string]any{"type": "string"}}
	case t.Kind() == reflect.Slice:
		p = map[string]any{"type": "array", "items": map[string]any{"type": "string"}}
	case isScalar(t):
		p = scalarSchema(at, t)
		if value := defaultOf(v); value != nil {
			p["default"] = value
		}
	default:
		p = s.object(at, v)
	}
	if meaning := s[at]; meaning != "" {
		p["description"] = meaning
	}
	return p
}

// scalarSchema returns the schema of a single value of a type. Each may be a text with a reference.
func scalarSchema(at string, t reflect.Type) map[string]any {
	either := func(kinds ...string) map[string]any {
		return map[string]any{"type": append(kinds, "string"), "pattern": withReference} // a pattern binds texts only
	}
	text, isText := reflect.New(t).Interface().(encoding.TextUnmarshaler)
	_, isRate := text.(*ingest.Rate)
	switch {
	case at == "platform":
		return map[string]any{"enum": PlatformNames()}
	case at == "agents[].kind":
		return map[string]any{"enum": kindNames()}
	case isRate:
		return map[string]any{"type": []string{"string", "integer"}}
	case isText:
		return map[string]any{"type": "string"}
	case t == reflect.TypeFor[time.Duration]():
		return map[string]any{"type": []string{"string", "integer"}, "pattern": `^0$|^([0-9.]+(d|h|m|s|ms|us|µs|ns))+$|` + withReference, "maximum": 0}
	case t == reflect.TypeFor[adapters.Switch]():
		return map[string]any{"type": []string{"string", "boolean"}}
	case t.Kind() == reflect.Bool:
		return either("boolean")
	case t.Kind() == reflect.Int:
		return either("integer")
	case t.Kind() == reflect.Int64:
		return map[string]any{"type": []string{"integer", "string"}, "pattern": sizes.String() + "|" + withReference}
	case t.Kind() == reflect.Float64:
		return either("number")
	}
	return map[string]any{"type": "string"}
}

// defaultOf returns the default of a single value as JSON has it; nil for none.
func defaultOf(v reflect.Value) any {
	if _, isSecret := v.Interface().(secret.Value); isSecret || v.IsZero() {
		return nil
	}
	switch v.Kind() {
	case reflect.Bool, reflect.Int, reflect.Float64:
		return v.Interface()
	case reflect.Int64:
		if v.Type() != reflect.TypeFor[time.Duration]() {
			return v.Interface()
		}
	}
	return text(v)
}

// entry returns an entry of a list of mappings with its defaults.
func entry(t reflect.Type) reflect.Value {
	switch t {
	case reflect.TypeFor[access.Token]():
		return reflect.ValueOf(access.Token{Senders: access.SendersOwn})
	case reflect.TypeFor[Agent]():
		return reflect.ValueOf(defaultAgent())
	}
	return reflect.Zero(t)
}
