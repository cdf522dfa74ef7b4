package operator_test

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"parley/adapters"
	"parley/adapters/guard"
	"parley/cmd/parley/internal/operator"
	"parley/config"
	"parley/config/secret"
	"parley/ingest/attach"
	"parley/ingest/journal"
	"parley/ingest/journal/journaltest"
	"parley/ingest/journal/sqlite"
)

// The tokens of the operators of a test.
const (
	viewerToken   = "canary-viewer-1f0a77c2-5e9d"
	readerToken   = "canary-reader-83bd21e0-9c4f"
	operatorToken = "canary-operator-6a2e94d7-1b58"
)

// service is a service on a new store, with the reasons of its refusals.
type service struct {
	*operator.Service
	config  *config.Config
	mu      sync.Mutex
	reasons []string
}

// newService returns a service without a daemon.
func newService(t *testing.T) *service {
	t.Helper()
	engine, err := sqlite.Open(t.Context(), filepath.Join(journaltest.Dir(t), "parley.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := &service{config: config.Default()}
	s.config.Operators = []config.Operator{
		{ID: "vera", Token: secret.New(viewerToken), Role: config.RoleViewer},
		{ID: "rhea", Token: secret.New(readerToken), Role: config.RoleReader},
		{ID: "olga", Token: secret.New(operatorToken), Role: config.RoleOperator},
	}
	s.config.Attachments.Dir = filepath.Join(t.TempDir(), "attachments")
	files, err := attach.New(s.config.Attachments, attach.Books{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	j := journal.New(engine, journal.Options{Node: "a"})
	t.Cleanup(func() { _ = j.Close() })
	s.Service = &operator.Service{
		Journal: j, Config: func() *config.Config { return s.config }, Now: time.Now, Version: "0.0.0", Node: "a",
		Files: files,
		Guard: guard.New(func(reason string) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.reasons = append(s.reasons, reason)
		}),
	}
	return s
}

// taken returns the reasons of the refusals since the last call.
func (s *service) taken() (reasons []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	reasons, s.reasons = s.reasons, nil
	return reasons
}

// running makes the service one of a running daemon, whose parts are well.
func (s *service) running() {
	s.Live = &operator.Live{
		ConfiguredAt: func() time.Time { return time.Time{} }, Store: working{}, Workspaces: &workspaces{}, Agents: working{},
	}
}

// working is a store and agents that work.
type working struct{}

func (working) TakesMessages(context.Context) error { return nil }

func (working) Agent(string) operator.AgentHealth { return operator.AgentHealth{} }

// workspaces are workspaces whose platform gives one answer about channels.
type workspaces struct {
	channels []string
	err      error
	names    map[string]string // of channels
}

func (*workspaces) Status(string) (s adapters.Status, known bool) { return s, false }

func (w *workspaces) Channels(context.Context, string) ([]string, error) { return w.channels, w.err }

func (w *workspaces) ChannelName(_ context.Context, _, channel string) (string, bool) {
	name, ok := w.names[channel]
	return name, ok
}

func (*workspaces) Check(context.Context, string) []operator.Finding { return nil }
