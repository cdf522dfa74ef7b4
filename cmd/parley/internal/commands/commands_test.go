package commands

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"parley/adapters/agent/acp/acptest"
	"parley/adapters/browsertest"
)

// TestMain runs the command instead of the tests if PARLEY_COMMAND is set.
func TestMain(m *testing.M) {
	acptest.Main()
	systemConfig = os.Getenv("PARLEY_SYSTEM_CONFIG") // that of this machine is no test's
	if os.Getenv("PARLEY_COMMAND") != "" {
		Main()
	}
	browsertest.Main(m)
}

// output is the exit status and the output of a command.
type output struct {
	status         int
	stdout, stderr string
}

// parley runs the command in dir.
func parley(t *testing.T, dir string, args ...string) output {
	t.Helper()
	return runProgram(t, os.Args[0], dir, args...)
}

// runProgram runs a command of a program in dir.
func runProgram(t *testing.T, program, dir string, args ...string) output {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var stdout, stderr strings.Builder
	command := exec.CommandContext(ctx, program, args...)
	command.Dir, command.Stdout, command.Stderr = dir, &stdout, &stderr
	command.Env = append(os.Environ(), "PARLEY_COMMAND=1")
	if err := command.Run(); err != nil && command.ProcessState == nil {
		t.Fatal(err)
	}
	return output{command.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

func write(t *testing.T, dir, name, content string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

const hello = `{"type":"message","channel":"D1","user":"U1","text":"hello","ts":"1750000000.000001"}`

// TestExitStatus checks the exit status, 0, 1 for a failure and 2 for wrong use, and the
// standard error.
func TestExitStatus(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "sound/parley.yaml", "listen: 127.0.0.1:0\n") // a daemon may use the default address
	write(t, dir, "sound/workspaces/ours.yaml", "id: ours\nplatform: web\nagent: echo\nweb: {tokens: [{id: a, token: ci-7f3a9c51d2e84b60a1c35e97, name: c}]}\n")
	write(t, dir, "hello.json", hello)
	write(t, dir, "lines.jsonl", `{"platform":"slack","body":`+hello+"}\nno JSON\n{\"platform\":\"slack\",\"body\":7}\n")
	for _, c := range []struct {
		line   string
		status int
		stderr string // a part of the standard error; "" if that is empty
	}{
		{"version", 0, ""},
		{"--help", 0, ""},
		{"run --help", 0, ""},
		{"--version", 0, ""},
		{"-V", 0, ""},
		{"version --json", 0, ""},
		{"help exit-codes", 0, ""},
		{"help environment", 0, ""},
		{"help files", 0, ""},
		{"completion bash", 0, ""},
		{"check --offline --json --config sound/parley.yaml", 0, ""},
		{"replay --json lines.jsonl", 0, ""},
		{"stauts", 2, "did you mean status?"},
		{"version --color mauve", 2, "--color"},
		{"version --env-file missing.env", 1, "--env-file"},
		{"check --config sound/parley.yaml", 0, ""},
		{"replay lines.jsonl", 0, ""}, // an unusable line is no failure
		{"replay --format json lines.jsonl", 0, ""},
		{"replay --platform slack hello.json lines.jsonl", 0, ""},
		{"", 0, ""},
		{"walk", 2, "walk"},
		{"run fast", 2, "fast"},
		{"completion tcsh", 2, "tcsh"},
		{"workspace", 0, ""},
		{"workspace remove", 2, "remove"},
		{"version --colour", 2, "--colour"},
		{"replay", 2, "replay FILE…"},
		{"replay --format yaml lines.jsonl", 2, "--format"},
		{"replay --platform irc hello.json", 2, "--platform"},
		{"replay hello.json", 2, "one of slack, discord"},
		{"replay missing.jsonl", 1, "missing.jsonl"},
		{"replay --platform slack missing.json", 1, "missing.json"},
		{"replay --config missing.yaml lines.jsonl", 1, "missing.yaml:1:"},
		{"check --config missing.yaml", 1, "1 fault\n"},
		{"run --config missing.yaml", 1, "missing.yaml:1:"},
	} {
		got := parley(t, dir, strings.Fields(c.line)...)
		if got.status != c.status || !strings.Contains(got.stderr, c.stderr) || (c.stderr == "") != (got.stderr == "") {
			t.Errorf("parley %s: %d, want %d\n%s%s", c.line, got.status, c.status, got.stdout, got.stderr)
		}
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	got := parley(t, t.TempDir(), "version")
	if !regexp.MustCompile(`^parley \d+\.\d+\.\d+, commit \S+, go1\.\S+, \w+/\w+, schema [1-9]\d*\n$`).MatchString(got.stdout) {
		t.Errorf("%q", got.stdout)
	}
}

func TestCheckPrintsEveryFault(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "parley.yaml", "listen: 127.0.0.1:0\nlog: {level: loud}\nlisten: :1\n")
	write(t, dir, "workspaces/acme.yaml", "id: acme\nplatform: slack\nagent: nobody\nslack: {bot_token: \"${NO_SUCH_TOKEN}\", app_token: xapp-1}\n")
	got := parley(t, dir, "check")
	if got.status != 1 {
		t.Errorf("status %d", got.status)
	}
	for _, want := range []string{
		`(?m)^parley\.yaml:2: log\.level: .+$`,
		`(?m)^parley\.yaml:3: listen: is given twice.+$`,
		`(?m)^workspaces/acme\.yaml:3: agent: .+$`,
		`(?m)^workspaces/acme\.yaml:4: slack\.bot_token: .*NO_SUCH_TOKEN.*$`,
	} {
		if !regexp.MustCompile(want).MatchString(got.stdout) {
			t.Errorf("%s does not match\n%s", want, got.stdout)
		}
	}
	if lines := strings.Count(got.stdout, "\n"); lines != 4 {
		t.Errorf("%d lines:\n%s", lines, got.stdout)
	}
	if started := parley(t, dir, "run"); started.status != 1 || !strings.Contains(started.stderr, "workspaces/acme.yaml:3: agent:") {
		t.Errorf("run: %d %s", started.status, started.stderr)
	}
}

func TestCheckWithoutFaults(t *testing.T) {
	t.Parallel()
	if got := parley(t, t.TempDir(), "check"); got.status != 0 || got.stdout != "the configuration is sound: 1 workspace, 1 agent\n" {
		t.Errorf("%+v", got)
	}
}

// TestCheckWarns checks a configuration that is not safe. That is no fault.
func TestCheckWarns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "parley.yaml", "agents:\n  - {id: m, kind: openai, model: m, base_url: \"http://203.0.113.7/v1\"}\n")
	write(t, dir, "workspaces/ours.yaml", "id: ours\nplatform: web\nagent: m\nweb: {tokens: [{id: a, token: ci-7f3a9c51d2e84b60a1c35e97, name: c}]}\n")
	got := parley(t, dir, "check", "--offline")
	if got.status != 0 || !strings.HasPrefix(got.stderr, "parley.yaml:2: agents[0].base_url: warning: ") || strings.Count(got.stderr, "\n") != 1 {
		t.Errorf("%+v", got)
	}
}

// TestReplayFormats replays the same line in both formats.
func TestReplayFormats(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "hello.json", hello)
	text := parley(t, dir, "replay", "--platform", "slack", "hello.json").stdout
	json := parley(t, dir, "replay", "--platform", "slack", "--format", "json", "hello.json").stdout
	if !strings.HasPrefix(text, "1  stored message, run (direct)") || !strings.HasPrefix(json, `{"n":1,"disposition":"stored",`) {
		t.Errorf("%s%s", text, json)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("replay left files: %v %v", entries, err)
	}
}

// TestReplayHelp checks that replay does not promise to read parley.yaml.
func TestReplayHelp(t *testing.T) {
	t.Parallel()
	if got := parley(t, t.TempDir(), "replay", "--help").stdout; !strings.Contains(got, "--config") || strings.Contains(got, "parley.yaml") {
		t.Error(got)
	}
}

// TestReplayIntoClosedPipe runs "parley replay | head": the replay ends without an error and
// removes its scratch store.
func TestReplayIntoClosedPipe(t *testing.T) {
	t.Parallel()
	dir, scratch := t.TempDir(), t.TempDir()
	line := `{"platform":"slack","body":{"type":"message","channel":"D1","user":"U1","text":"` + strings.Repeat("x", 40<<10) + `","ts":"1750000000.0000`
	var lines strings.Builder
	for n := range 40 { // more than a pipe holds
		fmt.Fprintf(&lines, "%s%02d\"}}\n", line, n)
	}
	write(t, dir, "lines.jsonl", lines.String())
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var stderr strings.Builder
	command := exec.CommandContext(ctx, os.Args[0], "replay", "lines.jsonl")
	command.Dir, command.Stderr = dir, &stderr
	command.Env = append(os.Environ(), "PARLEY_COMMAND=1", "TMPDIR="+scratch)
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(output).ReadString('\n'); err != nil {
		t.Error(err)
	}
	_ = output.Close()
	if err := command.Wait(); err != nil || stderr.Len() > 0 {
		t.Errorf("%v %s", err, &stderr)
	}
	if left, err := os.ReadDir(scratch); err != nil || len(left) > 0 {
		t.Errorf("replay left %v, %v", left, err)
	}
}

// process is a running daemon.
type process struct {
	t      *testing.T
	name   string // of the command in the message of a failed test
	cmd    *exec.Cmd
	stdout strings.Builder
	log    *bufio.Scanner
}

// start starts a command that runs the daemon in dir.
func start(t *testing.T, dir, name string, args ...string) *process {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	p := &process{t: t, name: name, cmd: exec.CommandContext(ctx, name, args...)}
	p.cmd.Dir, p.cmd.Env, p.cmd.Stdout = dir, append(os.Environ(), "PARLEY_COMMAND=1"), &p.stdout
	stderr, err := p.cmd.StderrPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	p.log = bufio.NewScanner(stderr)
	return p
}

// await returns the first line of the log that contains words.
func (p *process) await(words string) string {
	p.t.Helper()
	last := ""
	for p.log.Scan() {
		if last = p.log.Text(); strings.Contains(last, words) {
			return last
		}
	}
	p.t.Fatalf("%s: %q was not logged; the last line is %s", p.name, words, last)
	return ""
}

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// end waits until the daemon has ended with the status 0.
func (p *process) end() {
	p.t.Helper()
	for p.log.Scan() { // to the end of the output
		continue
	}
	if err := p.cmd.Wait(); err != nil {
		p.t.Errorf("the daemon ended with %v", err)
	}
}

// TestSignals runs the daemon as a process. SIGHUP reloads its files, the format of the log
// included, and SIGTERM ends it with the status 0.
func TestSignals(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "parley.yaml", "listen: 127.0.0.1:0\n")
	write(t, dir, "workspaces/ours.yaml", "id: ours\nplatform: web\nagent: echo\nweb: {tokens: [{id: a, token: ci-7f3a9c51d2e84b60a1c35e97, name: c}]}\n")
	daemon := start(t, dir, os.Args[0], "run")
	daemon.await("parley is ready")
	write(t, dir, "parley.yaml", "listen: 127.0.0.1:0\nlog: {format: text}\n")
	daemon.signal(syscall.SIGHUP)
	if line := daemon.await("the configuration was reloaded"); !strings.HasPrefix(line, "time=") {
		t.Errorf("after a change of the format: %s", line)
	}
	daemon.signal(syscall.SIGTERM)
	daemon.await("parley stops")
	daemon.end()
	if daemon.stdout.Len() != 0 {
		t.Errorf("printed without a terminal: %s", &daemon.stdout)
	}
}

// TestHangupDuringTheStart sends SIGHUP while the daemon waits for its store. The signal does not end
// the process; the failure of the store does.
func TestHangupDuringTheStart(t *testing.T) {
	t.Parallel()
	store, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	dir := t.TempDir()
	write(t, dir, "parley.yaml", "listen: 127.0.0.1:0\nstore: \"postgres://parley@"+store.Addr().String()+"/parley?sslmode=disable\"\n")
	write(t, dir, "workspaces/ours.yaml", "id: ours\nplatform: web\nagent: echo\nweb: {tokens: [{id: a, token: ci-7f3a9c51d2e84b60a1c35e97, name: c}]}\n")
	daemon := start(t, dir, os.Args[0], "run")
	connected, err := store.Accept()
	if err != nil {
		t.Fatal(err)
	}
	daemon.signal(syscall.SIGHUP)
	_, _ = store.Close(), connected.Close()
	for daemon.log.Scan() { // to the end of the output
		continue
	}
	if _ = daemon.cmd.Wait(); daemon.cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("the daemon ended with %v, want the status 1", daemon.cmd.ProcessState)
	}
}

// TestIdleConnections opens more connections than the daemon may have files.
func TestIdleConnections(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "parley.yaml", "listen: 127.0.0.1:0\n")
	write(t, dir, "workspaces/ours.yaml", "id: ours\nplatform: web\nagent: echo\nweb: {tokens: [{id: a, token: ci-7f3a9c51d2e84b60a1c35e97, name: c}]}\n")
	const files = 128
	daemon := start(t, dir, "sh", "-c", fmt.Sprintf(`ulimit -n %d && exec "$0" run`, files), os.Args[0])
	address := daemon.address()
	for range 2 * files {
		idle, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer idle.Close()
	}
	client := &http.Client{Timeout: 10 * time.Second}
	response, err := client.Get("http://" + address + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	daemon.signal(syscall.SIGTERM)
	daemon.end()
}

// TestHelloNeedsTerminal opens files that are a terminal, and files that are none.
func TestHelloNeedsTerminal(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{"/dev/ptmx": true, os.DevNull: false, filepath.Join(t.TempDir(), "out"): false} {
		file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Skip(err)
		}
		if got := helloOn(file) != nil; got != want {
			t.Errorf("%s: hello is printed: %v", name, got)
		}
		_ = file.Close()
	}
}
