package main

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
)

// layers is the order of the packages: an import points to a lower rank. A name that ends
// in /... includes the packages below it that have no longer name here.
var layers = [][]string{
	0:  {"ingest/event", "ingest/wake", "assembly/stream", "config/secret", "adapters/guard"},
	1:  {"assembly/lookalike"},
	2:  {"adapters", "adapters/httpcall", "adapters/jsonobject", "adapters/markdown", "adapters/words", "ingest/journal/...", "ingest/attach/...", "assembly", "assembly/legacy", "assembly/runinput"},
	3:  {"ingest/work", "adapters/backfill"},
	4:  {"ingest", "adapters/...", "assembly/turn"},
	5:  {"adapters/deliver", "adapters/agent"},
	6:  {"adapters/agent/remote"},
	7:  {"adapters/agent/..."},
	8:  {"config"},
	9:  {"cmd/parley/internal/daemon", "cmd/internal/command"},
	10: {"cmd/parley", "cmd/parley-bench/...", "cmd/parley-fake"},
}

// goPackage is the output of go list for one package.
type goPackage struct {
	ImportPath string
	Doc        string
	Imports    []string
}

func packages(t *testing.T) []goPackage {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Doc,Imports", "parley/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var list []goPackage
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
}

// rank returns a package's index in layers, by its own name or else by the longest name
// that includes it; -1 if it is not listed.
func rank(path string) int {
	longest, best := "", -1
	for i, layer := range layers {
		for _, name := range layer {
			below, whole := strings.CutSuffix(name, "/...")
			switch {
			case path == name:
				return i
			case whole && strings.HasPrefix(path+"/", below+"/") && len(name) > len(longest):
				longest, best = name, i
			}
		}
	}
	return best
}

// related reports whether one of two packages is below the other, or the second is internal
// to a folder that contains both.
func related(a, b string) bool {
	shared, _, internal := strings.Cut(b, "/internal/")
	return strings.HasPrefix(a, b+"/") || strings.HasPrefix(b, a+"/") || internal && strings.HasPrefix(a, shared+"/")
}

// TestImportsPointDown compares every import between our packages with layers.
func TestImportsPointDown(t *testing.T) {
	for _, p := range packages(t) {
		from := strings.TrimPrefix(p.ImportPath, "parley/")
		if rank(from) < 0 {
			t.Errorf("%s has no rank: add it to layers", from)
			continue
		}
		for _, path := range p.Imports {
			to, ours := strings.CutPrefix(path, "parley/")
			if !ours || rank(to) < rank(from) || rank(to) == rank(from) && related(from, to) {
				continue
			}
			t.Errorf("%s (rank %d) imports %s (rank %d)", from, rank(from), to, rank(to))
		}
		if rank(from) == 0 {
			onlyStandard(t, from, p.Imports)
		}
	}
}

func onlyStandard(t *testing.T, from string, imports []string) {
	t.Helper()
	for _, path := range imports {
		if first, _, _ := strings.Cut(path, "/"); strings.Contains(first, ".") {
			t.Errorf("%s imports %s: the lowest rank may import only the standard library", from, path)
		}
	}
}

// TestPackageComments checks that each package has a comment that begins with its name, as
// Go's documentation expects.
func TestPackageComments(t *testing.T) {
	for _, p := range packages(t) {
		name := p.ImportPath[strings.LastIndex(p.ImportPath, "/")+1:]
		first, rest, _ := strings.Cut(p.Doc, " ")
		if first == "Package" || first == "Command" {
			first, _, _ = strings.Cut(rest, " ")
		}
		if !strings.EqualFold(first, name) {
			t.Errorf("%s: the package comment begins %q", p.ImportPath, p.Doc)
		}
	}
}
