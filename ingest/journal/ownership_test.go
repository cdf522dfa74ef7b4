package journal_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
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
	"budgets":  "budgets",
	"messages": "messages", "carried": "messages",
	"envelopes":  "envelopes",
	"deliveries": "outbox", "paces": "outbox",
	"runs": "runs", "run_events": "runs", "run_posts": "runs", "run_steps": "runs", "run_attempts": "runs", "run_inputs": "runs", "questions": "runs",
	"workstreams": "workstreams",
	"schedules":   "schedules", "schedule_ticks": "schedules",
	"operator_log": "audit",
	"search_words": "search", "search_changes": "search", "search_progress": "search", "search_people": "search",
	"retention_progress": ".",
	"unfinished_copy":    "transfer",
}

// The columns of a thread's row that another package than places writes, so that one statement can
// write what one event changes.
var columnOwners = map[string]string{
	"next_seq": "messages", "last_at": "messages", "opened_on": "messages", "changed": "messages",
	"pending": "envelopes", "intake_at": "envelopes", "accepting": "envelopes",
	"agent": "runs", "question": "runs", "bot_channel": "runs", "turn_*": "runs", "run_*": "runs",
	"begun_seq": "runs", "context_from": "runs", "history": "runs",
}

// others do not work with the journal's tables: the engines, the copy of a whole store, and tests.
var others = []string{"sqlite", "postgres", "transfer", "storage/schema", "journaltest"}

// TestEachTableHasOneOwner reads every SQL text of the journal's packages, and fails if a package
// writes a table, or a column of a thread's row, that it does not own.
func TestEachTableHasOneOwner(t *testing.T) {
	written := map[string]bool{}
	for folder, files := range folders(t) {
		for _, text := range texts(t, files) {
			for _, table := range tablesOf(text) {
				written[table] = true
				owner, known := owners[table]
				switch {
				case !known:
					t.Errorf("%s writes the table %s, which has no owner", folder, table)
				case table == "threads" && strings.Contains(text, "UPDATE threads SET"): // by its columns
				case owner != folder:
					t.Errorf("%s writes the table %s, which %s owns: %s", folder, table, owner, text)
				}
			}
			for _, column := range columnsOf(text) {
				if owner := ownerOf(column); owner != folder {
					t.Errorf("%s writes the column %s of threads, which %s owns: %s", folder, column, owner, text)
				}
			}
		}
	}
	for table, owner := range owners {
		if owner != "transfer" && !written[table] {
			t.Errorf("no statement writes the table %s", table)
		}
	}
}

// folders returns the parsed files, without tests, of each package that works with tables.
func folders(t *testing.T) map[string][]*ast.File {
	t.Helper()
	packages := map[string][]*ast.File{}
	set := token.NewFileSet()
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, entry fs.DirEntry, err error) error {
		for _, other := range others {
			if name == other {
				return fs.SkipDir
			}
		}
		if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		packages[path.Dir(name)] = append(packages[path.Dir(name)], file)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return packages
}

// texts returns the strings of files. The parts of a string that are joined by + are one text, in
// which a ? replaces each part that is no literal.
func texts(t *testing.T, files []*ast.File) (list []string) {
	t.Helper()
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BinaryExpr:
				if text, ok := joined(t, n); ok {
					list = append(list, text)
					return false
				}
			case *ast.BasicLit:
				if n.Kind == token.STRING {
					list = append(list, literal(t, n))
				}
			case *ast.CallExpr:
				if table, ok := stepOf(t, n); ok {
					list = append(list, "DELETE FROM "+table)
				}
			}
			return true
		})
	}
	return list
}

// stepOf returns the table from which a step of retention deletes rows, if a call makes one by the name
// of the table.
func stepOf(t *testing.T, call *ast.CallExpr) (table string, ok bool) {
	t.Helper()
	s, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return "", false
	}
	at, ok := map[string]int{"ByAge": 0, "ByID": 1, "ByKey": 1}[s.Sel.Name]
	if !ok {
		return "", false
	}
	l, ok := call.Args[at].(*ast.BasicLit)
	if !ok {
		t.Fatalf("the table of a step is no literal")
	}
	return literal(t, l), true
}

// joined returns the text of a sum of strings, without those in its calls. It returns false for another
// expression.
func joined(t *testing.T, e ast.Expr) (string, bool) {
	t.Helper()
	switch e := e.(type) {
	case *ast.BinaryExpr:
		left, leftOK := joined(t, e.X)
		right, rightOK := joined(t, e.Y)
		return left + right, e.Op == token.ADD && (leftOK || rightOK)
	case *ast.BasicLit:
		return literal(t, e), e.Kind == token.STRING
	}
	return "?", false
}

func literal(t *testing.T, l *ast.BasicLit) string {
	t.Helper()
	if l.Kind != token.STRING {
		return "?"
	}
	text, err := strconv.Unquote(l.Value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

var writing = regexp.MustCompile(`\b(?:INSERT INTO|UPDATE|DELETE FROM)\s+([a-z_]+)`)

// tablesOf returns the tables that a text writes.
func tablesOf(text string) (tables []string) {
	for _, found := range writing.FindAllStringSubmatch(text, -1) {
		tables = append(tables, found[1])
	}
	return tables
}

var (
	setting = regexp.MustCompile(`UPDATE threads SET|^\s*,`)
	column  = regexp.MustCompile(`^\s*([a-z_]+)\s*=`)
)

// columnsOf returns the columns of threads that a text writes: a whole statement, or a part of one that
// begins with a comma.
func columnsOf(text string) (columns []string) {
	at := setting.FindStringIndex(text)
	if at == nil {
		return nil
	}
	depth, begin := 0, at[1]
	rest := text[begin:]
	for i := 0; i <= len(rest); i++ {
		ends := i == len(rest) || depth == 0 && (strings.HasPrefix(rest[i:], " WHERE") || strings.HasPrefix(rest[i:], "\tWHERE") || strings.HasPrefix(rest[i:], "RETURNING"))
		switch {
		case ends || depth == 0 && rest[i] == ',':
			if found := column.FindStringSubmatch(text[begin : at[1]+i]); found != nil {
				columns = append(columns, found[1])
			}
			begin = at[1] + i + 1
		case rest[i] == '(':
			depth++
		case rest[i] == ')':
			depth--
		}
		if ends {
			return columns
		}
	}
	return columns
}

func ownerOf(column string) string {
	for pattern, owner := range columnOwners {
		if match, _ := path.Match(pattern, column); match {
			return owner
		}
	}
	return owners["threads"]
}
