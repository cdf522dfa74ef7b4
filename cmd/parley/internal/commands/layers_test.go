package commands

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// layers is the order of the packages: an import points to a lower rank. A name that ends
// in /... includes the packages below it that have no longer name here. A * means one
// folder: every platform has the same rooms.
var layers = [][]string{
	0:  {"ingest/event", "ingest/wake", "ingest/stream", "config/secret", "adapters/guard"},
	1:  {"ingest/trace", "adapters/adaptertest/faults", "adapters/browsertest", "ingest/card/...", "assembly/lookalike", "ingest/journal/storage/..."},
	2:  {"adapters", "adapters/emoji", "adapters/httpcall", "adapters/jsonobject", "adapters/markdown", "adapters/sse", "adapters/words", "ingest/journal/...", "ingest/attach/...", "assembly", "assembly/legacy", "assembly/plan", "assembly/runinput"},
	3:  {"adapters/supervise", "ingest/journal/messages", "ingest/journal/transfer"},
	4:  {"ingest/journal/envelopes", "ingest/journal/outbox"},
	5:  {"ingest/journal/workstreams"},
	6:  {"ingest/journal/runs"},
	7:  {"ingest/journal/listing", "ingest/journal/record", "ingest/journal/search", "ingest/journal/usage"},
	8:  {"ingest/journal", "ingest/journal/people"},
	9:  {"ingest/backup", "ingest/journal/journaltest", "ingest/work", "adapters/backfill", "adapters/*/payload", "ingest/schedule", "assembly/workstream"},
	10: {"adapters/*/call", "adapters/*/memory", "adapters/web/exchange"},
	11: {"adapters/web/access"},
	12: {"adapters/web/files", "adapters/slack/slacktest/internal/life", "adapters/slack/slacktest/internal/wire"},
	13: {"adapters/web/static", "adapters/slack/slacktest/internal/content", "adapters/slack/slacktest/internal/delivery"},
	14: {"ingest", "adapters/...", "assembly/turn"},
	15: {"adapters/deliver", "adapters/agent", "adapters/web/threads"},
	16: {"adapters/agent/remote", "adapters/web/runs", "adapters/web/speak"},
	17: {"adapters/agent/...", "adapters/web", "adapters/web/tools", "adapters/*/internal/*"},
	18: {"config"},
	19: {"cmd/parley/internal/operator", "cmd/parley/internal/chat", "cmd/parley/internal/pipeline", "cmd/parley/internal/boot", "cmd/parley/internal/traces/..."},
	20: {"cmd/parley/internal/console", "cmd/parley/internal/doctor", "cmd/parley/internal/figures", "cmd/parley/internal/player"},
	21: {"cmd/parley/internal/daemon", "cmd/internal/command", "cmd/parley-bench/internal/figure"},
	22: {"cmd/parley-bench/internal/ledger", "cmd/parley/internal/setup"},
	23: {"cmd/parley-bench/internal/rig", "cmd/parley/internal/commands"},
	24: {"cmd/parley-bench/floor"},
	25: {"cmd/parley-bench/internal/trial", "cmd/parley-bench/internal/rigtest"},
	26: {"cmd/parley-bench/internal/scenario/*"},
	27: {"cmd/parley", "cmd/parley-bench", "cmd/parley-fake"},
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
func rank(pkg string) int {
	longest, best := "", -1
	for i, layer := range layers {
		for _, name := range layer {
			below, whole := strings.CutSuffix(name, "/...")
			switch itself, _ := path.Match(name, pkg); {
			case itself:
				return i
			case whole && strings.HasPrefix(pkg+"/", below+"/") && len(name) > len(longest):
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
		for _, imported := range p.Imports {
			to, ours := strings.CutPrefix(imported, "parley/")
			if !ours || rank(to) < rank(from) || rank(to) == rank(from) && related(from, to) {
				continue
			}
			t.Errorf("%s (rank %d) imports %s (rank %d)", from, rank(from), to, rank(to))
		}
		if strings.HasPrefix(from, "ingest") && slices.ContainsFunc(p.Imports, func(to string) bool { return strings.HasPrefix(to, "parley/assembly") }) {
			t.Errorf("%s imports assembly, which composes the input of agents from what ingest has recorded", from)
		}
		if rank(from) == 0 {
			onlyStandard(t, from, p.Imports)
		}
	}
}

func onlyStandard(t *testing.T, from string, imports []string) {
	t.Helper()
	for _, imported := range imports {
		if !isStandard(imported) {
			t.Errorf("%s imports %s: the lowest rank may import only the standard library", from, imported)
		}
	}
}

func isStandard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".")
}

// pureRooms match the packages that do no I/O.
const pureRooms = "parley/adapters/*/payload"

// doIO are the standard packages that do I/O. net/url, net/netip and net/mail do none.
var doIO = regexp.MustCompile(`^(net|net/(http|rpc|smtp|textproto)(/.*)?|os(/.*)?|database/.*|syscall(/.*)?|log(/.*)?)$`)

// pureLibraries are the libraries that a pure room may import. A platform's library may be one of
// them for the sake of its types.
var pureLibraries = []string{"github.com/bwmarrin/discordgo", "github.com/google/uuid", "github.com/microcosm-cc/bluemonday", "github.com/rivo/uniseg", "github.com/yuin/goldmark", "golang.org/x/text"}

// TestPureRooms checks that a pure room imports nothing that does I/O, neither itself nor through
// packages of ours. The package adapters is not followed: it declares the interfaces between the
// core and a platform, some of which name types of net/http.
func TestPureRooms(t *testing.T) {
	all := map[string]goPackage{}
	for _, p := range packages(t) {
		all[p.ImportPath] = p
	}
	checked := 0
	for room := range all {
		if pure, _ := path.Match(pureRooms, room); pure {
			checked++
			onlyPure(t, all, room, map[string]bool{"parley/adapters": true})
		}
	}
	if checked == 0 {
		t.Errorf("no package matches %s", pureRooms)
	}
}

// onlyPure checks the imports of a package, and of those of our packages that have not been seen.
func onlyPure(t *testing.T, all map[string]goPackage, from string, seen map[string]bool) {
	t.Helper()
	seen[from] = true
	for _, imported := range all[from].Imports {
		_, ours := all[imported]
		isPure := func(library string) bool { return strings.HasPrefix(imported+"/", library+"/") }
		switch {
		case ours && !seen[imported]:
			onlyPure(t, all, imported, seen)
		case !ours && isStandard(imported) && doIO.MatchString(imported), !ours && !isStandard(imported) && !slices.ContainsFunc(pureLibraries, isPure):
			t.Errorf("%s imports %s, which does I/O or may do it: a pure room must not import it, nor a package that does", from, imported)
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
