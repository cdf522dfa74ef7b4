package commands

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"parley/ingest/journal/postgres/postgrestest"
)

// TestDocumentsRun does what each page says: it writes the files that the page shows, and runs its commands in order,
// in a folder that looks like a clone of the repository. A block that shows an output after a block of commands is
// compared with it. At the end, the configuration of the page has no fault.
func TestDocumentsRun(t *testing.T) {
	programs := builtPrograms(t)
	for _, p := range pages(t) {
		if slices.ContainsFunc(p.blocks, func(b block) bool { return b.runs() || b.file() != "" }) {
			t.Run(p.path, func(t *testing.T) {
				t.Parallel()
				newReader(t, p, programs).read()
			})
		}
	}
}

// runs reports whether the block has commands to run.
func (b block) runs() bool { return b.lang == "sh" && !strings.HasPrefix(b.treatment, onlyTo) }

// named is the first line of a block that is a file: a comment with its path.
var named = regexp.MustCompile(`^(?:#|//) ([\w./-]+\.(?:yaml|py|mjs|go))\n`)

// file returns the path of the file that the block shows; empty for none.
func (b block) file() string {
	if found := named.FindStringSubmatch(b.text); found != nil {
		return found[1]
	}
	return ""
}

// reader is somebody who does what a page says.
type reader struct {
	t       *testing.T
	page    page
	dir     string
	env     []string
	address *strings.Replacer // the addresses of the page by free ones
	own     string            // addresses that the page's daemon alone has
	printed string            // by the last block
}

func newReader(t *testing.T, p page, programs programs) *reader {
	dir, err := os.MkdirTemp("", "page") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	clone, err := filepath.Abs(repository)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(clone)
	for _, e := range entries {
		if err == nil && e.Name() != ".git" && e.Name() != "data" {
			err = os.Symlink(filepath.Join(clone, e.Name()), filepath.Join(dir, e.Name()))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	daemon, console, agent, fake := freeAddress(t), freeAddress(t), freeAddress(t), freeAddress(t)
	port := func(address string) string { return address[strings.LastIndex(address, ":")+1:] }
	goProgram, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	curl, err := exec.LookPath("curl")
	if err != nil {
		curl = "curl" // a page that needs it is skipped
	}
	for name, script := range map[string]string{
		"parley":       fmt.Sprintf(`PARLEY_COMMAND=1 exec %s "$@"`, os.Args[0]),
		"parley-fake":  fmt.Sprintf(`a=$1; shift; if [ "$a" = client ]; then set -- -url http://%s "$@"; else set -- -listen %s "$@"; fi; exec %s "$a" "$@"`, daemon, fake, programs["parley-fake"]),
		"curl":         fmt.Sprintf(`exec %s --fail-with-body --no-progress-meter --dump-header /dev/stderr "$@"`, curl),
		"parley-bench": fmt.Sprintf(`exec %s "$@"`, programs["parley-bench"]),
		"go":           fmt.Sprintf(`case "$1 $2" in "run ./cmd/"*) p=${2#./cmd/}; shift 2; exec "$p" "$@";; esac; cd %s; exec %s "$@"`, clone, goProgram),
	} {
		write(t, dir, ".bin/"+name, "#!/bin/sh\n"+script+"\n")
		if err := os.Chmod(filepath.Join(dir, ".bin", name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	r := &reader{t: t, page: p, dir: dir, own: "listen: " + daemon + "\nconsole: {listen: \"" + console + "\"}\n",
		address: strings.NewReplacer(":8484", ":"+port(daemon), ":8485", ":"+port(console), ":8000", ":"+port(agent), `", 8000)`, `", `+port(agent)+")", "PORT=8000", "PORT="+port(agent), ":9998", ":"+port(fake))}
	r.env = append(os.Environ(), "PATH="+filepath.Join(dir, ".bin")+":"+os.Getenv("PATH"), "PORT="+port(agent))
	secrets := map[string]string{"SLACK_APP_TOKEN": "xapp-1-A0-7f3a9c51d2e84b60", "SLACK_BOT_TOKEN": "xoxb-7f3a9c51d2e84b60a1c35e97"}
	for _, name := range regexp.MustCompile(`\$\{(\w+)\}`).FindAllStringSubmatch(p.text, -1) {
		if secrets[name[1]] == "" {
			secrets[name[1]] = "7f3a9c51d2e84b60a1c35e97b2d4"
		}
	}
	for name, value := range maps.All(secrets) {
		r.env = append(r.env, name+"="+value)
	}
	if strings.Contains(p.text, "PARLEY_DB_URL") { // without a server, the page is skipped
		r.env = append(r.env, "PARLEY_DB_URL="+postgrestest.URL(t), "PARLEY_NEW_DB_URL="+postgrestest.URL(t))
	}
	write(t, dir, "parley.yaml", r.own)
	return r
}

// read does what the page says, from its first to its last block.
func (r *reader) read() {
	shown := false // the block before has printed something
	configured := false
	for _, b := range r.page.blocks {
		text := r.address.Replace(b.text)
		switch file := b.file(); {
		case b.runs():
			r.need(text)
			if b.treatment == beside {
				r.begin(b, text)
			} else {
				r.run(b, text)
			}
			shown = b.treatment != beside
			continue
		case b.lang == "text" && shown:
			r.compare(b)
		case file == "parley.yaml":
			write(r.t, r.dir, file, r.complete(text))
			configured = true
		case file != "":
			r.sameExample(b)
			write(r.t, r.dir, file, text)
			configured = configured || filepath.Ext(file) == ".yaml"
		}
		shown = false
	}
	if configured {
		r.run(block{line: 1}, "parley check --offline")
	}
}

// sameExample compares a block with the file of that name in the examples beside the page, if there is one.
func (r *reader) sameExample(b block) {
	r.t.Helper()
	path := filepath.Join(repository, filepath.Dir(r.page.path), "examples", b.file())
	if example, err := os.ReadFile(path); err == nil && string(example) != b.text {
		r.t.Errorf("%s:%d: %s is another program", r.page.path, b.line, path)
	}
}

// complete adds addresses to a configuration that has none.
func (r *reader) complete(text string) string {
	for line := range strings.Lines(r.own) {
		if key, _, _ := strings.Cut(line, ":"); !regexp.MustCompile(`(?m)^` + key + ":").MatchString(text) {
			text += line
		}
	}
	return text
}

// need skips a page whose commands this machine lacks.
func (r *reader) need(text string) {
	for _, program := range []string{"python3", "node", "curl", "jq", "openssl", "pg_dump"} {
		if _, err := exec.LookPath(program); err != nil && regexp.MustCompile(`\b`+program+`\b`).MatchString(text) {
			r.t.Skipf("%s is not installed", program)
		}
	}
}

// command returns a shell for the text of a block, with the variables of earlier blocks.
func (r *reader) command(text string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(r.t.Context(), 2*time.Minute)
	r.t.Cleanup(cancel)
	c := exec.CommandContext(ctx, "bash", "-aeuo", "pipefail", "-c", "[ ! -f .variables ] || . ./.variables\n"+text)
	c.Dir, c.Env, c.WaitDelay = r.dir, r.env, 10*time.Second
	return c
}

// keepVariables is the end of a block whose variables later blocks have.
const keepVariables = `export -p | grep -v "^declare -[^ ]*r" >.variables`

// run runs a whole block.
func (r *reader) run(b block, text string) {
	r.t.Helper()
	var stdout, stderr strings.Builder
	c := r.command(text + "\n" + keepVariables)
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Run(); err != nil {
		r.t.Fatalf("%s:%d: %v\n%s\n%s", r.page.path, b.line, err, &stdout, &stderr)
	}
	r.printed = stdout.String()
}

// begin starts a block that goes on until the page has been read. It returns when the daemon is ready, or when another
// program has printed a line.
func (r *reader) begin(b block, text string) {
	r.t.Helper()
	c := r.command(text)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, out, err := os.Pipe()
	if err != nil {
		r.t.Fatal(err)
	}
	keys, err := c.StdinPipe() // a fake ends with its input
	c.Stdout, c.Stderr = out, out
	if err == nil {
		err = c.Start()
	}
	_ = out.Close()
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGTERM)
		_, _ = keys.Close(), c.Wait()
		_ = in.Close()
	})
	said, ready := "", false
	for lines := bufio.NewScanner(in); !ready && lines.Scan(); {
		said += lines.Text() + "\n"
		ready = !strings.Contains(text, "parley run") || strings.Contains(lines.Text(), "parley is ready")
	}
	if ready && strings.HasPrefix(said, "HTTP/") { // the head of a stream
		ready = strings.Contains(said, " 200 ")
	}
	if !ready {
		r.t.Fatalf("%s:%d: the program ended\n%s", r.page.path, b.line, said)
	}
	go func() { // a full pipe would stop the program
		for lines := bufio.NewScanner(in); lines.Scan(); {
			continue
		}
	}()
}

// The parts of an output that change from run to run.
var (
	uuids  = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}`)
	digits = regexp.MustCompile(`\d[\d,.]*`)
	spaces = regexp.MustCompile(`[ \t]+`)
)

// alike removes from a line the parts that change from run to run.
func alike(line string) string {
	line = uuids.ReplaceAllString(line, "U")
	return strings.TrimSpace(spaces.ReplaceAllString(digits.ReplaceAllString(line, "9"), " "))
}

// compare compares what a page shows with the output of the block before. The line … matches any lines, and a … within a
// line any words.
func (r *reader) compare(b block) {
	r.t.Helper()
	pattern := ""
	for line := range strings.Lines(b.text) {
		line = alike(r.address.Replace(line))
		if line == "…" {
			pattern += `(?:.*\n)*`
			continue
		}
		pattern += strings.ReplaceAll(regexp.QuoteMeta(line), "…", ".*") + `\n`
	}
	got := ""
	for line := range strings.Lines(r.printed) {
		got += alike(line) + "\n"
	}
	if !regexp.MustCompile(`^` + pattern + `$`).MatchString(got) {
		r.t.Errorf("%s:%d: the page shows\n%s\nand the commands print\n%s", r.page.path, b.line, b.text, r.printed)
	}
}
