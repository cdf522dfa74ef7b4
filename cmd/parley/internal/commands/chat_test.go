package commands

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"parley/cmd/parley/internal/chat"
	"parley/config/secret"
)

// model is a model's server that streams two parts of an answer, and the second one only when told. To
// "fail" it answers that the key is wrong.
type model struct {
	*httptest.Server
	begun chan struct{} // a first part was sent
	rest  chan string   // the second part of the next answer
	ended chan struct{} // a caller has hung up before the second part
}

func startModel(t *testing.T) *model {
	m := &model{begun: make(chan struct{}, 10), rest: make(chan string, 10), ended: make(chan struct{}, 10)}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), "fail") {
			http.Error(w, `{"error":{"message":"Incorrect API key provided"}}`, http.StatusUnauthorized)
			return
		}
		part := func(text string) {
			raw, _ := json.Marshal(text) // a text always encodes
			fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"content\":%s}}]}\n\n", raw)
			w.(http.Flusher).Flush()
		}
		w.Header().Set("Content-Type", "text/event-stream")
		part("Once ")
		m.begun <- struct{}{}
		select {
		case rest := <-m.rest:
			part(rest)
			_, _ = io.WriteString(w, "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
		case <-r.Context().Done():
			m.ended <- struct{}{}
		}
	}))
	t.Cleanup(m.Close)
	return m
}

// startLocal starts a daemon with only agents, the first of which asks the model. It returns the folder
// and the daemon's address.
func startLocal(t *testing.T, m *model) (dir, url string) {
	t.Helper()
	dir = t.TempDir()
	write(t, dir, "parley.yaml", "listen: 127.0.0.1:0\nagents: [{id: m, kind: openai, model: m, base_url: \""+m.URL+"/v1\"}]\n")
	return dir, "http://" + start(t, dir, os.Args[0], "run").address()
}

func decodeAnswer(t *testing.T, text string) (a chat.Answer) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	return a
}

// TestChatOnce asks one question as a script does.
func TestChatOnce(t *testing.T) {
	t.Parallel()
	m := startModel(t)
	dir, url := startLocal(t, m)
	m.rest <- "upon."
	got := parley(t, dir, "chat", "--url", url, "--once", "tell", "--json")
	if a := decodeAnswer(t, got.stdout); got.status != 0 || !a.Answered || a.Text != "Once upon." || a.Error != "" || a.Run == "" {
		t.Errorf("%+v", got)
	} else if m.rest <- "more."; true {
		got = parley(t, dir, "chat", "--url", url, "--thread", a.Thread, "--once", "go on")
	}
	if got.status != 0 || got.stdout != "Once more.\n" || got.stderr != "" {
		t.Errorf("%+v", got)
	}
	if got = parley(t, dir, "chat", "--url", url, "--once", "/status"); got.status != 0 || got.stdout != "m has nothing to do here.\n" {
		t.Errorf("%+v", got)
	}
	if got = parley(t, dir, "chat", "--url", url, "--once", "fail"); got.status != statusNoAnswer || got.stdout != "" {
		t.Errorf("%+v", got)
	}
}

// TestChatWithoutDaemon checks the exit statuses of chat before there is a daemon, and of wrong use.
func TestChatWithoutDaemon(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "ran/parley.yaml", "listen: 127.0.0.1:1\n")
	write(t, dir, "ran/data/local.token", "ci-7f3a9c51d2e84b60a1c35e97\n")
	write(t, dir, "ours/parley.yaml", "listen: 127.0.0.1:1\n")
	write(t, dir, "ours/workspaces/ours.yaml", "id: ours\nplatform: web\nagent: echo\nweb: {tokens: [{id: a, token: "+webToken+", name: c}]}\n")
	write(t, dir, "new/parley.yaml", "")
	for line, status := range map[string]int{
		"--config new/parley.yaml --once hello":                                                             statusNoDaemon,
		"--config ran/parley.yaml --once hello":                                                             statusNoDaemon,
		"--config ours/parley.yaml --workspace ours --once hello":                                           statusNoDaemon, // with the token of the file
		"--config ours/parley.yaml --workspace ours --once hello --url http://127.0.0.1:1":                  2,              // which nobody else gets
		"--config ours/parley.yaml --workspace theirs":                                                      2,
		"--config ran/parley.yaml --thread one --once hello":                                                2,
		"--config ran/parley.yaml --token-file none --once hello":                                           1,
		"--config none/parley.yaml --workspace ours --once hello":                                           1,
		"--config ours/parley.yaml --token-file ran/data/local.token --once hello --url http://127.0.0.1:1": statusNoDaemon,
	} {
		if got := parley(t, dir, append([]string{"chat"}, strings.Fields(line)...)...); got.status != status || got.stdout != "" || got.stderr == "" {
			t.Errorf("%s: %+v, want %d", line, got, status)
		}
	}
}

// TestChatReadsLines gives the questions on the standard input.
func TestChatReadsLines(t *testing.T) {
	t.Parallel()
	m := startModel(t)
	dir, url := startLocal(t, m)
	m.rest <- "1"
	m.rest <- "2"
	command := exec.CommandContext(t.Context(), os.Args[0], "chat", "--url", url, "-q")
	command.Dir, command.Env, command.Stdin = dir, append(os.Environ(), "PARLEY_COMMAND=1"), strings.NewReader("a\n\n/new\nb\n")
	out, err := command.Output()
	if want := "Once 1\nI begin anew: from now on I don't see what was said here before.\nOnce 2\n"; err != nil || string(out) != want {
		t.Errorf("%v %q, want %q", err, out, want)
	}
}

// TestChatInterrupted sends SIGINT during an answer: the run is stopped, and the status is 130.
func TestChatInterrupted(t *testing.T) {
	t.Parallel()
	m := startModel(t)
	dir, url := startLocal(t, m)
	command := exec.CommandContext(t.Context(), os.Args[0], "chat", "--url", url, "--once", "tell")
	command.Dir, command.Env = dir, append(os.Environ(), "PARLEY_COMMAND=1")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	<-m.begun
	if err := command.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	<-m.ended
	if _ = command.Wait(); command.ProcessState.ExitCode() != statusInterrupted {
		t.Errorf("the chat ended with %v", command.ProcessState)
	}
}

// screen collects what a person sees, and tells when a text has appeared.
type screen struct {
	mu      sync.Mutex
	text    strings.Builder
	changed chan struct{}
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case s.changed <- struct{}{}:
	default:
	}
	return s.text.Write(p)
}

// await waits until the text ends with words.
func (s *screen) await(t *testing.T, words string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		s.mu.Lock()
		text := s.text.String()
		s.mu.Unlock()
		if strings.HasSuffix(text, words) {
			return
		}
		select {
		case <-s.changed:
		case <-ctx.Done():
			t.Fatalf("%q does not end with %q", text, words)
		}
	}
}

// TestChatOfAPerson plays a person at a terminal: the answer appears as it comes, /status answers
// during it, Ctrl-C stops the next one, and Ctrl-C twice ends the chat.
func TestChatOfAPerson(t *testing.T) {
	t.Parallel()
	m := startModel(t)
	dir, url := startLocal(t, m)
	token, err := os.ReadFile(filepath.Join(dir, "data/local.token"))
	if err != nil {
		t.Fatal(err)
	}
	seen, interrupts := &screen{changed: make(chan struct{}, 1)}, make(chan os.Signal)
	s := &chat.Session{
		Client:     &chat.Client{Base: url, Token: secret.New(strings.TrimSpace(string(token))), Workspace: "local", Thread: uuid.NewString()},
		Screen:     &chat.Screen{Out: seen, Aside: seen, Live: true},
		Interrupts: interrupts, Prompt: "> ",
	}
	in, keys := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- s.Run(t.Context(), in) }()
	typeLine := func(line string) { _, _ = io.WriteString(keys, line+"\n") }
	seen.await(t, "> ")
	typeLine("tell")
	<-m.begun
	seen.await(t, "> Once ")
	typeLine("/status")
	seen.await(t, "s).\n") // since when it has been working
	m.rest <- "upon\x1b[2J a time."
	seen.await(t, `Once upon\u001b[2J a time.`+"\n> ")
	typeLine("again")
	<-m.begun
	seen.await(t, "> Once ")
	interrupts <- os.Interrupt
	<-m.ended
	seen.await(t, "Stopped.\nno answer\n> ")
	interrupts <- os.Interrupt
	if err := <-ended; chatStatus(err).Error() != chat.ErrInterrupted.Error() {
		t.Error(err)
	}
}
