package config

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

// compileSchema returns the schema that an editor gets.
func compileSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	raw, err := json.Marshal(Schema())
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("parley.schema.json", document); err != nil {
		t.Fatal(err)
	}
	compiled, err := compiler.Compile("parley.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

// validate returns the fault of a YAML text.
func validate(t *testing.T, schema *jsonschema.Schema, text string) error {
	t.Helper()
	var value any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	return schema.Validate(document)
}

// TestSchemaAdmitsExamples validates the examples of the documentation and of the adapters.
func TestSchemaAdmitsExamples(t *testing.T) {
	schema := compileSchema(t)
	pages, err := filepath.Glob("../adapters/*/README.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := 0
	for _, page := range append(pages, "README.md", "../README.md") {
		content, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(content), -1) {
			examples++
			if err := validate(t, schema, block[1]); err != nil {
				t.Errorf("%s: %v in\n%s", page, err, block[1])
			}
		}
	}
	if examples < 5 {
		t.Errorf("%d examples were found", examples)
	}
}

// TestSchemaRefusesFaults proves that an editor shows what Load refuses, as far as a schema can tell.
func TestSchemaRefusesFaults(t *testing.T) {
	schema := compileSchema(t)
	for text, sound := range map[string]bool{
		"listen: 127.0.0.1:1\nshutdown: 1h30m\n":                                      true,
		"shutdown: ${TIME}\nattachments: {max_bytes: 20MiB}\n":                        true,
		"store: {url: \"${URL}\", connections: 5}\n":                                  true,
		"id: a\nplatform: web\nchannels: [{id: C1, policy: {require_mention: no}}]\n": false,
		"listne: 127.0.0.1:1\n":                                                       false,
		"shutdown: soon\n":                                                            false,
		"agents: [{id: a, kind: oracle}]\n":                                           false,
		"agents: {id: a}\n":                                                           false,
		"attachments: {max_bytes: many}\n":                                            false,
		"id: a\nplatform: telegraph\n":                                                false,
		"id: a\nplatform: slack\nslack: {bot_tokn: x}\n":                              false,
		"id: a\nplatform: slack\ncontext: {turns: several}\n":                         false,
	} {
		if err := validate(t, schema, text); (err == nil) != sound {
			t.Errorf("%q: %v", text, err)
		}
	}
}
