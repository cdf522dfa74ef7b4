package daemon_test

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"parley/adapters/slack/slacktest"
)

// traced is the variable of the environment that makes TestTracedMessage show its calls.
const traced = "PARLEY_TRACED_MESSAGE"

// TestPathOfMessage builds the daemon with functions that print their names, those of the package comment's path, and sends a
// message. The message calls each of them, in this order. Calls between them do not matter: a worker may look once more for the post before.
func TestPathOfMessage(t *testing.T) {
	if os.Getenv(traced) != "" {
		t.Skip("this process is the traced one")
	}
	if testing.Short() {
		t.Skip("it builds the daemon once more")
	}
	t.Parallel()
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	want, functions := []string{}, map[string][]string{} // by folder
	for i, step := range regexp.MustCompile(`(?m)^//  (\d+)\. (\S+) (\S+): `).FindAllStringSubmatch(string(doc), -1) {
		if step[1] != strconv.Itoa(i+1) {
			t.Errorf("step %d has the number %s", i+1, step[1])
		}
		want = append(want, step[2]+" "+step[3])
		functions[step[2]] = append(functions[step[2]], step[3])
	}
	replaced := map[string]string{}
	for dir, names := range functions {
		instrument(t, dir, names, replaced)
	}
	overlay := filepath.Join(t.TempDir(), "overlay.json")
	list, _ := json.Marshal(map[string]any{"Replace": replaced}) // texts always encode
	if err := os.WriteFile(overlay, list, 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "go", "test", "-v", "-overlay", overlay, "-count=1", "-run", "^TestTracedMessage$", ".")
	command.Env = append(os.Environ(), traced+"=1")
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	_, during, _ := strings.Cut(string(out), tracedBegin)
	calls := regexp.MustCompile(`(?m)^path: .*$`).FindAllString(during, -1)
	at := 0
	for _, step := range want {
		n := slices.Index(calls[at:], "path: "+step)
		if n < 0 {
			t.Fatalf("%s is not called after what doc.go names before it; the calls:\n%s", step, strings.Join(calls, "\n"))
		}
		at += n + 1
	}
}

// tracedBegin is printed when the message of TestTracedMessage begins.
const tracedBegin = "path begins\n"

// TestTracedMessage sends the message of TestPathOfMessage: the name of its author and the type of its channel are known.
func TestTracedMessage(t *testing.T) {
	if os.Getenv(traced) == "" {
		t.Skip("TestPathOfMessage runs it")
	}
	h := open(t, plan{files: map[string]string{"workspaces/acme.yaml": strings.NewReplacer("agent: echo", "agent: helper", "coalesce: 0s", "", "post_rate: 0", "preview: off, working: off").Replace(fmt.Sprintf(socketMode, 1))}})
	h.slack.AddUser(slacktest.User{ID: mara, DisplayName: "Mara"})
	h.slack.AddChannel(room, "garden")
	h.awaitUp()
	say := func(text string) {
		h.slack.PushRaw(slacktest.EventsAPI, h.newMessage("<@U0BOT> "+text).Mention())
		h.answerNext(replyWith("Soon."))
	}
	say("when do we water?")
	h.posts(1)
	h.awaitMetric(sent, 1)
	print(tracedBegin)
	say("and when do we weed?")
	h.posts(2)
	h.awaitMetric(sent, 2)
}

// instrument adds copies of the files of a folder to replaced in which some functions print their names.
func instrument(t *testing.T, dir string, names []string, replaced map[string]string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../../../..", dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, file, source, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		changed := source
		for _, d := range slices.Backward(parsed.Decls) {
			f, ok := d.(*ast.FuncDecl)
			if !ok || !slices.Contains(names, receiver(f)+f.Name.Name) {
				continue
			}
			found++
			begin := set.Position(f.Body.Lbrace).Offset + 1
			changed = slices.Concat(changed[:begin], fmt.Appendf(nil, ` print("path: %s %s\n");`, dir, receiver(f)+f.Name.Name), changed[begin:])
		}
		if len(changed) > len(source) {
			copied := filepath.Join(t.TempDir(), filepath.Base(file))
			whole, err := filepath.Abs(file)
			if err == nil {
				err = os.WriteFile(copied, changed, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			replaced[whole] = copied
		}
	}
	if found != len(names) {
		t.Errorf("%s has %d of the functions %q", dir, found, names)
	}
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
