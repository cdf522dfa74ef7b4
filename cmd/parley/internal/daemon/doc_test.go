package daemon_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// maxPath bounds the number of functions in the path of a message.
const maxPath = 60

// TestPathOfMessage checks that every function in the package comment's path exists, and
// that the path names each function once.
func TestPathOfMessage(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	path := regexp.MustCompile(`(?m)^//  (\d+)\. (\S+) (\S+): `).FindAllStringSubmatch(string(doc), -1)
	if len(path) == 0 || len(path) > maxPath {
		t.Errorf("the path has %d functions, want 1 to %d", len(path), maxPath)
	}
	declared, seen := map[string]map[string]bool{}, map[string]bool{}
	for i, step := range path {
		dir, name := step[2], step[3]
		if declared[dir] == nil {
			declared[dir] = functions(t, filepath.Join("../../../..", dir))
		}
		if step[1] != strconv.Itoa(i+1) || !declared[dir][name] || seen[dir+" "+name] {
			t.Errorf("step %s: %s.%s does not exist, is repeated, or has a wrong number", step[1], dir, name)
		}
		seen[dir+" "+name] = true
	}
}

// functions returns the functions of a package, such as "New", and its methods, such as
// "Daemon.Run".
func functions(t *testing.T, dir string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has %d files: %v", dir, len(files), err)
	}
	names := map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				names[receiver(f)+f.Name.Name] = true
			}
		}
	}
	return names
}

// receiver returns the type of a method with a dot, and "" for a function.
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	switch t := f.Recv.List[0].Type.(type) {
	case *ast.StarExpr:
		return t.X.(*ast.Ident).Name + "."
	case *ast.Ident:
		return t.Name + "."
	}
	return "?."
}
