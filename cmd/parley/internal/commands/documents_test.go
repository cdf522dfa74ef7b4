package commands

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// repository is the path of the top folder.
const repository = "../../../.."

// page is a Markdown file. .github/CONTRIBUTING.md says how its blocks are treated.
type page struct {
	path, text string
	blocks     []block
}

// block is a fenced block of a page.
type block struct {
	line      int
	lang      string // such as sh
	treatment string // of sh: empty to run it, beside, or "read: " and the reason not to run it
	text      string
}

// The treatments of a block of commands.
const (
	beside = "beside"
	onlyTo = "read: "
)

// pages returns all pages of the repository.
func pages(t *testing.T) (list []page) {
	t.Helper()
	err := filepath.WalkDir(repository, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "testdata" || d.Name() == "node_modules"):
			return filepath.SkipDir
		case filepath.Ext(path) != ".md":
			return nil
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(repository, path) // both are relative
		list = append(list, page{name, string(text), fences(string(text))})
		return err
	})
	if err != nil || len(list) < 10 {
		t.Fatalf("%d pages, %v", len(list), err)
	}
	return list
}

// fences returns the fenced blocks of a page.
func fences(text string) (list []block) {
	var open *block
	for i, line := range strings.Split(text, "\n") {
		info, fence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case fence && open == nil:
			lang, treatment, _ := strings.Cut(info, " ")
			open = &block{line: i + 2, lang: lang, treatment: treatment}
		case fence:
			list, open = append(list, *open), nil
		case open != nil:
			open.text += line + "\n"
		}
	}
	return list
}

// bare is the beginning of a block of commands that is not marked as one.
var bare = regexp.MustCompile(`^(curl|parley|go (run|test|build)|docker|apt-get|sudo|npm|systemctl) `)

// runner is the name of a script of the gate or of a test of this package.
var runner = regexp.MustCompile(`\.ci/\w+|\bTest\w+`)

// span is a piece of code within a sentence.
var span = regexp.MustCompile("`([^`\n]+)`")

// ours are the beginnings of the commands that sentences are checked for.
var ours = regexp.MustCompile(`^(parley|parley-bench|parley-fake|go (run|test|build|generate)|\.ci/\w+)( |$)`)

// TestDocumentsNameCommands checks every command of every page: a command of ours exists, takes its flags and, in a
// block, its arguments; a folder and a test that are named exist; a block has the form of the shell.
func TestDocumentsNameCommands(t *testing.T) {
	checked := 0
	programs := builtPrograms(t)
	for _, p := range pages(t) {
		fault := func(line int, words []string, err string) {
			if err != "" {
				t.Errorf("%s:%d: %s: %s", p.path, line, strings.Join(words, " "), err)
			}
			checked++
		}
		for _, b := range p.blocks {
			if b.lang != "sh" {
				if b.lang == "" && bare.MatchString(b.text) {
					t.Errorf("%s:%d: a block of commands begins with sh", p.path, b.line)
				}
				continue
			}
			if b.treatment != "" && b.treatment != beside && len(strings.TrimPrefix(b.treatment, onlyTo)) == len(b.treatment) {
				t.Errorf("%s:%d: a block of commands is sh, sh %s, or sh %sREASON", p.path, b.line, beside, onlyTo)
			}
			if name := runner.FindString(b.treatment); strings.HasPrefix(b.treatment, onlyTo) && !strings.Contains(sourceOf(t, name), p.path) {
				t.Errorf("%s:%d: %q names nothing that runs the page", p.path, b.line, b.treatment)
			}
			if out, err := exec.CommandContext(t.Context(), "bash", "-n", "-c", b.text).CombinedOutput(); err != nil {
				t.Errorf("%s:%d: %v\n%s", p.path, b.line, err, out)
			}
			for _, words := range commandsOf(b.text) {
				fault(b.line, words, programs.fault(t, words, true))
			}
		}
		fenced := false
		for i, line := range strings.Split(p.text, "\n") {
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				fenced = !fenced
			}
			for _, code := range span.FindAllStringSubmatch(line, -1) {
				if fenced || !ours.MatchString(code[1]) {
					continue
				}
				for _, words := range commandsOf(code[1]) {
					fault(i+1, words, programs.fault(t, words, false))
				}
			}
		}
	}
	if checked < 100 {
		t.Errorf("only %d commands were found", checked)
	}
}

// sourceOf returns the text of a script, or of the file with a test of this package; empty if there is none.
func sourceOf(t *testing.T, runner string) string {
	t.Helper()
	files, function := []string{filepath.Join(repository, runner)}, ""
	if strings.HasPrefix(runner, "Test") {
		files, _ = filepath.Glob("*_test.go") // the pattern is right
		function = "func " + runner + "("
	}
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), function) {
			return string(text)
		}
	}
	return ""
}

// wordPattern is a part of a line of the shell: a comment, a separator, a redirection, or a word with its quotations.
var wordPattern = regexp.MustCompile(`\s#[^\n]*|^#[^\n]*|\n|[|&;()]+|\d?[<>]+&?\s*[^\s|&;()]*|(?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s|&;()'"<>\\])+`)

// assignment is a variable before a command.
var assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)

// commandsOf returns the words of each command of a text for the shell.
func commandsOf(text string) (list [][]string) {
	text = strings.ReplaceAll(text, "\\\n", " ")
	var words []string
	for _, word := range append(wordPattern.FindAllString(text, -1), "\n") {
		switch {
		case strings.ContainsAny(word[:1], "\n|&;()"):
			if len(words) > 0 {
				list, words = append(list, words), nil
			}
		case strings.HasPrefix(strings.TrimSpace(word), "#"), strings.HasPrefix(strings.TrimLeft(word, "0123456789"), ">"), strings.HasPrefix(word, "<"):
		case len(words) == 0 && (assignment.MatchString(word) || slices.Contains([]string{"exec", "sudo", "do", "then", "if", "while", "!", "$"}, word)):
		default:
			words = append(words, strings.NewReplacer(`"`, "", "'", "").Replace(word))
		}
	}
	return list
}

// programs are the built programs of the repository beside parley: their paths by name.
type programs map[string]string

// builtPrograms builds the programs beside parley.
func builtPrograms(t *testing.T) programs {
	t.Helper()
	all := programs{}
	for _, name := range []string{"parley-fake", "parley-bench"} {
		all[name] = filepath.Join(t.TempDir(), name)
		if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", all[name], "parley/cmd/"+name).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	return all
}

// fault returns what is wrong with a command; empty if nothing is, or if it is no command of the repository. Where the
// words are whole, the arguments are checked too.
func (p programs) fault(t *testing.T, words []string, whole bool) string {
	t.Helper()
	if words[0] == "go" && len(words) > 2 && words[1] == "run" && strings.HasPrefix(words[2], "./cmd/") {
		words = append([]string{filepath.Base(words[2])}, words[3:]...)
	}
	switch program, rest := words[0], words[1:]; {
	case program == "parley":
		return parleyFault(rest, whole)
	case p[program] != "" && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") && strings.ToUpper(rest[0]) != rest[0]:
		help, _ := exec.CommandContext(t.Context(), p[program], rest[0], "-h").CombinedOutput()
		if !strings.Contains(string(help), "  -") && rest[0] != "floor" {
			return "there is no such command"
		}
		for _, word := range rest[1:] {
			if name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "="); name != word && !regexp.MustCompile(`(?m)^  -`+regexp.QuoteMeta(name)+`\b`).Match(help) && name != "h" {
				return "there is no flag " + word
			}
		}
	case strings.HasPrefix(program, ".ci/"):
		if info, err := os.Stat(filepath.Join(repository, program)); err != nil || info.Mode()&0o100 == 0 {
			return "there is no such script"
		}
	case program == "go":
		return goFault(rest)
	}
	return ""
}

// parleyFault returns what is wrong with a command line of parley.
func parleyFault(args []string, whole bool) string {
	root := rootCommand()
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd(args...)
	found, rest, err := root.Find(args)
	switch {
	case err != nil:
		return err.Error()
	case found == root && len(rest) > 0 && !strings.HasPrefix(rest[0], "-"):
		return "there is no such command"
	}
	if found.DisableFlagParsing {
		return ""
	}
	found.InitDefaultHelpFlag()
	if err := found.ParseFlags(rest); err != nil {
		return err.Error()
	}
	if given := found.Flags().Args(); whole || len(given) > 0 {
		if err := found.ValidateArgs(given); err != nil {
			return err.Error()
		}
	}
	return ""
}

// goFault returns what is wrong with a command of go: a folder or a test that is not there.
func goFault(args []string) string {
	folder := ""
	for _, word := range args {
		if strings.HasPrefix(word, "./") && !strings.HasSuffix(word, "...") {
			folder = filepath.Join(repository, word)
			if _, err := os.Stat(folder); err != nil {
				return "there is no folder " + word
			}
		}
	}
	i := slices.Index(args, "-run")
	if i < 0 || folder == "" || i+1 == len(args) {
		return ""
	}
	files, _ := filepath.Glob(filepath.Join(folder, "*_test.go")) // the pattern is right
	name := strings.Trim(args[i+1], "^$")
	for _, file := range files {
		if text, _ := os.ReadFile(file); strings.Contains(string(text), "func "+name) {
			return ""
		}
	}
	return "there is no test " + name
}

// TestHelpNamesCommands checks the examples in the help of each command.
func TestHelpNamesCommands(t *testing.T) {
	programs := builtPrograms(t)
	all := []*cobra.Command{rootCommand()}
	for i := 0; i < len(all); i++ {
		for _, words := range commandsOf(all[i].Example) {
			if fault := programs.fault(t, words, true); fault != "" {
				t.Errorf("parley %s --help: %s: %s", all[i].Name(), strings.Join(words, " "), fault)
			}
		}
		all = append(all, all[i].Commands()...)
	}
}

// TestRunbookNamesAlerts checks that the runbook has a row for each alert.
func TestRunbookNamesAlerts(t *testing.T) {
	runbook, err := os.ReadFile(filepath.Join(repository, ".github/RUNBOOK.md"))
	if err != nil {
		t.Fatal(err)
	}
	rules, err := os.ReadFile("../../deploy/prometheus/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	alerts := regexp.MustCompile(`alert: (\w+)`).FindAllStringSubmatch(string(rules), -1)
	for _, alert := range alerts {
		if !strings.Contains(string(runbook), "`"+alert[1]+"`") {
			t.Errorf(".github/RUNBOOK.md has no row for %s", alert[1])
		}
	}
	if len(alerts) < 5 {
		t.Errorf("%d alerts were found", len(alerts))
	}
}

// link is a link of a page to another file or to a heading.
var link = regexp.MustCompile(`\]\(([^)\s]+)\)|(?:src|srcset|href)="([^"]+)"`)

// TestDocumentsLink checks that every link within the repository leads to a file, and to a heading of it.
func TestDocumentsLink(t *testing.T) {
	for _, p := range pages(t) {
		for _, found := range link.FindAllStringSubmatch(p.text, -1) {
			target := found[1] + found[2]
			if strings.Contains(target, "://") || strings.HasPrefix(target, "/") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			name, anchor, _ := strings.Cut(target, "#")
			file := filepath.Join(repository, filepath.Dir(p.path), name)
			if name == "" {
				file = filepath.Join(repository, p.path)
			}
			text, err := os.ReadFile(file)
			if info, missing := os.Stat(file); missing != nil || !info.IsDir() && err != nil {
				t.Errorf("%s: the link %s leads nowhere", p.path, target)
			} else if anchor != "" && filepath.Ext(file) == ".md" && !slices.Contains(anchors(string(text)), anchor) {
				t.Errorf("%s: %s has no heading %s", p.path, name, anchor)
			}
		}
	}
}

// notInAnchors are the characters of a heading that its anchor leaves out.
var notInAnchors = regexp.MustCompile(`[^\p{L}\p{N} _-]`)

// anchors returns the anchors of a page's headings.
func anchors(text string) (list []string) {
	for line := range strings.Lines(text) {
		if heading, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && strings.HasPrefix(line, "#") {
			list = append(list, strings.ReplaceAll(notInAnchors.ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), ""), " ", "-"))
		}
	}
	return list
}

// TestTheGateRunsTheTestsOfReadme: README.md has one command for the tests, and the gate runs the same.
func TestTheGateRunsTheTestsOfReadme(t *testing.T) {
	t.Parallel()
	var command string
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			if p.path == "README.md" && strings.HasPrefix(b.text, "go test ") {
				command += b.text
			}
		}
	}
	gate, err := os.ReadFile(filepath.Join(repository, ".ci/run"))
	if err != nil {
		t.Fatal(err)
	}
	if command == "" || !strings.Contains(string(gate), "\n"+strings.TrimSpace(command)+" #") {
		t.Errorf("README.md says %q, and .ci/run does not", command)
	}
}
