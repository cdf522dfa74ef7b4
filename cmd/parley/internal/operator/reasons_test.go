package operator

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"
)

// TestEveryReasonHasWords reads the reasons of the pipeline from its source.
func TestEveryReasonHasWords(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "../../../../ingest/event/event.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "Reason") {
			return true
		}
		name, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		found++
		if known := reasons[name]; known.words == "" || known.change != "" && len(known.keys) == 0 {
			t.Errorf("the reason %s has no words, or a change without a key", name)
		}
		return true
	})
	if found != len(reasons) {
		t.Errorf("%d reasons are known, and the pipeline has %d", len(reasons), found)
	}
}
