package journal_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// owners are the packages that write each table of the schema: names below this folder; "." is the
// journal itself.
var owners = map[string]string{
	"workspaces": "threads", "channels": "threads", "threads": "threads", "participants": "threads", "actors": "threads", "news": "threads",
	"exclusive_leases": "threads", "gaps": "threads", "watermarks": "threads", "adapter_state": "threads", "tickets": "threads",
	"attachments": "files", "copies_to_check": "files", "blobs": "files",
	"budgets":   "budgets",
	"strangers": "strangers",
	"messages":  "messages", "carried": "messages", "forgotten": "messages",
	"envelopes":  "envelopes",
	"deliveries": "outbox", "paces": "outbox",
	"runs": "runs", "run_events": "runs", "run_posts": "runs", "run_steps": "runs", "run_attempts": "runs", "run_inputs": "runs", "questions": "runs", "agent_sessions": "runs", "agent_choices": "runs",
	"workstreams": "workstreams",
	"schedules":   "schedules", "schedule_ticks": "schedules",
	"operator_log": "audit",
	"usage_days":   "usage", "usage_progress": "usage",
	"search_words": "search", "search_changes": "search", "search_progress": "search", "search_people": "search",
	"retention_progress": ".",
	"unfinished_copy":    "transfer",
}

// others do not work with the journal's tables: the engines, the copy of a whole store, and tests.
var others = []string{"journal/sqlite", "journal/postgres", "journal/transfer", "journal/storage", "journal/journaltest"}

// writing finds the tables that statements write. FOR UPDATE and DO UPDATE SET name none.
var writing = regexp.MustCompile(`(FOR\s+|DO\s+)?\b(?:INSERT INTO|DELETE FROM|UPDATE)\s+([a-z_]*)`)

// TestEachTableHasOneOwner reads every string of the packages that work with the store, the journal and those around it, and fails if a package
// writes a table that it does not own.
func TestEachTableHasOneOwner(t *testing.T) {
	written := map[string]bool{}
	set := token.NewFileSet()
	err := fs.WalkDir(os.DirFS(".."), ".", func(name string, entry fs.DirEntry, err error) error {
		if slices.Contains(others, name) {
			return fs.SkipDir
		}
		if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(set, path.Join("..", name), nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			for _, table := range tablesOf(n) {
				written[table] = true
				if owner, known := owners[table]; !known || path.Join("journal", owner) != path.Dir(name) {
					t.Errorf("%s: the table %q, which this statement writes, has the owner %q", set.Position(n.Pos()), table, owner)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for table, owner := range owners {
		if owner != "transfer" && !written[table] {
			t.Errorf("no statement writes the table %s", table)
		}
	}
}

// tablesOf returns the tables that a string writes, or from which a step of retention deletes rows. The name is empty if the string
// leaves it to another one.
func tablesOf(n ast.Node) (tables []string) {
	switch n := n.(type) {
	case *ast.BasicLit:
		for _, found := range writing.FindAllStringSubmatch(n.Value, -1) {
			if found[1] == "" {
				tables = append(tables, found[2])
			}
		}
	case *ast.CallExpr:
		if s, ok := n.Fun.(*ast.SelectorExpr); ok && slices.Contains([]string{"ByAge", "ByID", "ByKey"}, s.Sel.Name) {
			at := slices.IndexFunc(n.Args, func(arg ast.Expr) bool { _, ok := arg.(*ast.BasicLit); return ok })
			table, _ := strconv.Unquote(n.Args[at].(*ast.BasicLit).Value)
			tables = []string{table}
		}
	}
	return tables
}
