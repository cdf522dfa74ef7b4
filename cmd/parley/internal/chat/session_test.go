package chat_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/uuid"

	"parley/cmd/parley/internal/chat"
	"parley/config/secret"
)

// seen collects what a person sees, and closes found when it first has words.
type seen struct {
	bytes.Buffer
	words string
	found chan struct{}
}

func (s *seen) Write(p []byte) (int, error) {
	before := strings.Contains(s.String(), s.words)
	n, err := s.Buffer.Write(p)
	if !before && strings.Contains(s.String(), s.words) {
		close(s.found)
	}
	return n, err
}

// TestThinking: a person sees that the agent works until its first words come, and /help lists the commands.
func TestThinking(t *testing.T) {
	screen := &seen{words: "the agent is thinking… ", found: make(chan struct{})}
	daemon := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-screen.found:
		case <-r.Context().Done():
		}
		_, _ = io.WriteString(w, "id: 1\ndata: {\"t\":7,\"m\":\"**Here** I am.\"}\n\nid: 2\ndata: {\"t\":4}\n\n")
	}))
	t.Cleanup(daemon.Close)
	s := &chat.Session{
		Client: &chat.Client{Base: daemon.URL, Token: secret.New("a-token-of-the-workspace"), Workspace: "local", Thread: uuid.NewString()},
		Screen: &chat.Screen{Out: screen, Aside: io.Discard, Live: true, Waits: true, Styled: true}, Prompt: "> ",
	}
	if err := s.Run(t.Context(), strings.NewReader("are you there?\n")); err != nil {
		t.Fatal(err)
	}
	if got := screen.String(); !strings.HasSuffix(got, "\r\x1b[K\x1b[1mHere\x1b[0m I am.\n") {
		t.Errorf("%q", got)
	}
	help := new(bytes.Buffer)
	s.Screen.Aside = help
	if err := s.Run(t.Context(), strings.NewReader("/help\n")); err != nil || !strings.Contains(help.String(), "/status") {
		t.Errorf("%v %q", err, help)
	}
}
