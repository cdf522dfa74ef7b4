package commands

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Parts of the sources and of the matrix in SECURITY_MODEL.md.
var (
	pathOfRoute   = regexp.MustCompile(`(?m)^  (/[^ :]*):`)
	kindOfEvent   = regexp.MustCompile(`Kind\w+ +Kind = "(\w+)"`)
	consoleRoute  = regexp.MustCompile(`pattern: "([^"]+)"|HandleFunc\("(?:GET |POST )?([^"]+)"`)
	operatorRoute = regexp.MustCompile(`Pattern: "\w+ ([^"]+)"`)
	testFunction  = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	quoted        = regexp.MustCompile("`([^`]+)`")
)

// TestTheMatrixIsComplete: each route and each kind of event has a way in the matrix of SECURITY_MODEL.md, each rule says something of
// each way, and each test that it names exists.
func TestTheMatrixIsComplete(t *testing.T) {
	read := func(path string) string {
		text, err := os.ReadFile(filepath.Join(repository, path))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	tests := map[string]bool{}
	var doors []string
	err := filepath.WalkDir(repository, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		name, _ := filepath.Rel(repository, path) // both are relative
		isTest := strings.HasSuffix(name, "_test.go")
		switch dir := filepath.ToSlash(filepath.Dir(name)); {
		case isTest:
			for _, found := range testFunction.FindAllStringSubmatch(read(name), -1) {
				tests[found[1]] = true
			}
		case dir == "cmd/parley/internal/operator":
			for _, found := range operatorRoute.FindAllStringSubmatch(read(name), -1) {
				doors = append(doors, "/api/v1/operator/"+found[1])
			}
		case dir == "cmd/parley/internal/console":
			for _, found := range consoleRoute.FindAllStringSubmatch(read(name), -1) {
				doors = append(doors, "console "+found[1]+found[2])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range pathOfRoute.FindAllStringSubmatch(read("adapters/web/openapi.yaml"), -1) { // which has each route of the daemon
		doors = append(doors, found[1])
	}
	for _, found := range kindOfEvent.FindAllStringSubmatch(read("ingest/event/event.go"), -1) {
		doors = append(doors, found[1])
	}

	_, matrix, _ := strings.Cut(read(".github/SECURITY_MODEL.md"), "\n## The matrix\n")
	matrix, _, _ = strings.Cut(matrix, "\n## ")
	tables := strings.Split(matrix, "\n### ")
	rows := func(table string) (list [][2]string) {
		for line := range strings.Lines(table) {
			if cells := strings.Split(line, " | "); strings.HasPrefix(line, "| ") && len(cells) == 2 && cells[0] != "| way" {
				list = append(list, [2]string{strings.TrimPrefix(cells[0], "| "), strings.TrimSuffix(strings.TrimSpace(cells[1]), " |")})
			}
		}
		return list
	}
	var ways, listed []string
	for _, row := range rows(tables[0]) {
		if row[0] != "open page" {
			ways = append(ways, row[0])
		}
		for _, found := range quoted.FindAllStringSubmatch(row[1], -1) {
			listed = append(listed, found[1])
		}
	}
	for _, door := range doors {
		if !slices.ContainsFunc(listed, func(entry string) bool {
			prefix, open := strings.CutSuffix(entry, "**")
			return entry == door || open && strings.HasPrefix(door, prefix)
		}) {
			t.Errorf("%s is no way of the matrix", door)
		}
	}
	if len(doors) < 100 || len(ways) != 17 || len(tables) != 12 {
		t.Errorf("%d routes and kinds, %d ways, %d tables", len(doors), len(ways), len(tables))
	}
	slices.Sort(ways)
	for _, table := range tables[1:] {
		rule, _, _ := strings.Cut(table, "\n")
		var told []string
		for _, row := range rows(table) {
			told = append(told, strings.Split(row[0], ", ")...)
			for _, found := range quoted.FindAllStringSubmatch(row[1], -1) {
				if strings.HasPrefix(found[1], "Test") && !tests[found[1]] {
					t.Errorf("%s: there is no test %s", rule, found[1])
				}
			}
			if row[1] == "" {
				t.Errorf("%s says nothing of %s", rule, row[0])
			}
		}
		if slices.Sort(told); !slices.Equal(told, ways) {
			t.Errorf("%s tells of %q, not of each way once", rule, told)
		}
	}
}
