package config

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"parley/config/secret"
	"parley/ingest/attach"
)

// inherited is the documented default of a channel's settings.
const inherited = "the workspace's"

// defaultSettings returns every key of a configuration with its default. A list of
// mappings has the keys of one entry, such as "agents[].id".
func defaultSettings() map[string]reflect.Value {
	all := map[string]reflect.Value{}
	main := defaults()
	main.Attachments.S3 = new(attach.S3)
	collect(all, "", reflect.ValueOf(*main))
	collect(all, "store", reflect.ValueOf(storeKeys{Connections: defaultConnections}))
	collect(all, "", reflect.ValueOf(workspaceFile{Workspace: NewWorkspace("", "", "")}))
	return all
}

// collect adds the settings of the struct v, whose keys are below path.
func collect(all map[string]reflect.Value, path string, v reflect.Value) {
	for _, one := range settings(v) {
		at, setting := join(path, one.key), one.value
		switch {
		case setting.Kind() != reflect.Pointer:
		case setting.IsNil() && setting.Type().Elem().Kind() == reflect.Bool: // a switch that is on unless a file turns it off
			setting = reflect.ValueOf(true)
		default:
			setting = setting.Elem()
		}
		isList := setting.Kind() == reflect.Slice && setting.Type().Elem().Kind() == reflect.Struct
		switch {
		case isList:
			collect(all, at+"[]", entry(setting.Type().Elem()))
		case path == "channels[]" || isScalar(setting.Type()) || setting.Kind() == reflect.Slice:
			all[at] = setting
		default:
			collect(all, at, setting)
		}
	}
}

// differences compares the tables of a reference with the code. It returns a line for each
// key that only one of them has, and for each other default.
func differences(reference string) []string {
	var found []string
	add := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	documented := map[string]string{}
	for _, row := range referenceRow.FindAllStringSubmatch(reference, -1) {
		if _, ok := documented[row[1]]; ok {
			add("%s is documented twice", row[1])
		}
		documented[row[1]] = row[2]
	}
	known := defaultSettings()
	for _, key := range slices.Sorted(maps.Keys(documented)) {
		if _, ok := known[key]; !ok {
			add("%s is documented, but is no key", key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(known)) {
		text, ok := documented[key]
		if !ok {
			add("%s is not documented", key)
		} else if !isDefault(key, text, known[key]) {
			add("%s: the documented default %s is wrong", key, text)
		}
	}
	return found
}

// isDefault reports whether a cell of a table is the default of a setting. It reads the
// cell as the configuration would.
func isDefault(key, cell string, want reflect.Value) bool {
	if strings.HasPrefix(key, "channels[].") && key != "channels[].id" {
		return cell == inherited
	}
	if cell == "none" {
		unset, isSecret := want.Interface().(secret.Value)
		return isSecret && unset.IsZero() || want.IsZero() && (want.Kind() == reflect.String || want.Kind() == reflect.Slice || want.Kind() == reflect.Map)
	}
	text, ok := strings.CutPrefix(cell, "`")
	text, closed := strings.CutSuffix(text, "`")
	if !ok || !closed || text == "" {
		return false
	}
	if want.Kind() == reflect.Slice {
		got := reflect.New(want.Type())
		return yaml.Unmarshal([]byte(text), got.Interface()) == nil && reflect.DeepEqual(got.Elem().Interface(), want.Interface())
	}
	got, err := scalar{text: text, replaced: true}.read(want.Type())
	return err == nil && reflect.DeepEqual(reflect.ValueOf(got).Convert(want.Type()).Interface(), want.Interface())
}

func readReference(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// TestReference compares README.md with the code.
func TestReference(t *testing.T) {
	for _, difference := range differences(readReference(t)) {
		t.Error(difference)
	}
}

// TestReferenceComparison changes README.md in every way that TestReference must notice.
func TestReferenceComparison(t *testing.T) {
	reference := readReference(t)
	if len(differences(reference)) > 0 {
		t.Skip("TestReference reports what README.md lacks")
	}
	var rows []string
	for _, key := range slices.Sorted(maps.Keys(defaultSettings())) {
		at := strings.Index(reference, "| `"+key+"` |")
		row, _, _ := strings.Cut(reference[at:], "\n")
		rows = append(rows, row)
		cells := strings.Split(row, " | ")
		cells[1] = cmp.Or(map[string]string{"`true`": "`false`", "`false`": "`true`"}[cells[1]], "`7d`")
		for change, changed := range map[string]string{"removed": "", "doubled": row + "\n" + row, "other default": strings.Join(cells, " | ")} {
			if len(differences(strings.Replace(reference, row, changed, 1))) != 1 {
				t.Errorf("%s: %s is not noticed", row, change)
			}
		}
	}
	if extra := strings.Replace(reference, rows[0], rows[0]+"\n| `log.colour` | `7d` | text | extra |", 1); len(differences(extra)) != 1 {
		t.Error("a row without a key is not noticed")
	}
}
