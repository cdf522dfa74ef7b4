package testapi

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/adapters/guard"
	"parley/adapters/web/access"
	"parley/adapters/web/exchange"
	"parley/adapters/web/files"
	webruns "parley/adapters/web/runs"
	webthreads "parley/adapters/web/threads"
	"parley/config/secret"
	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
	"parley/ingest/stream"
)

// Store is a fake journal with one run.
type Store struct {
	Mu         sync.Mutex
	Page       runs.Page
	messages   []messages.Message
	Changed    chan struct{}
	Added      []stream.Message
	key        string // of the last request that added messages
	Answer     *stream.Message
	AnswerKeys []string
	Woken      int
	tickets    map[string]threads.Ticket
	Named      map[string]string // the ids of runs, by the names that a client gave them
	Backend
	Stopped []string // run and notice
	Until   time.Time
	Made    []string // ids of threads
}

// Limited implements threads.Limits: Until.
func (s *Store) Limited(context.Context, event.Envelope) (time.Time, error) { return s.Until, nil }

// MakeThread notes the id of the thread.
func (s *Store) MakeThread(_ context.Context, _ event.Platform, id string, t threads.Thread, _ ...string) (threads.Thread, bool, error) {
	s.Made = append(s.Made, id)
	return t, true, nil
}

func (s *Store) stop(_ context.Context, run string, notice outbox.Notice) error {
	if s.Page.Ended() {
		return runs.ErrEnded
	}
	s.Stopped = append(s.Stopped, run+" "+notice.Text)
	return nil
}

// PutTicket implements access.Tickets.
func (s *Store) PutTicket(_ context.Context, secret string, t threads.Ticket, _ time.Duration) error {
	s.tickets[secret] = t
	return nil
}

// TakeTicket implements access.Tickets.
func (s *Store) TakeTicket(_ context.Context, secret string) (threads.Ticket, error) {
	t, ok := s.tickets[secret]
	if delete(s.tickets, secret); !ok {
		return t, storage.ErrNotFound
	}
	return t, nil
}

// RunEvents returns a page of the run.
func (s *Store) RunEvents(_ context.Context, run string, after int64, limit int) (runs.Page, error) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if run != s.Page.ID {
		return runs.Page{}, storage.ErrNotFound
	}
	page := s.Page
	page.Events = nil
	for _, e := range s.Page.Events {
		if e.Seq > after && len(page.Events) < limit {
			page.Events = append(page.Events, e)
		}
	}
	page.Full = len(page.Events) == limit
	return page, nil
}

// RunMessages returns the messages of the run.
func (s *Store) RunMessages(context.Context, string) ([]messages.Message, error) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return slices.Clone(s.messages), nil
}

// Artifacts implements runs.Store: the run has no files.
func (s *Store) Artifacts(context.Context, string) ([]runs.Artifact, error) { return nil, nil }

// NamedRun finds the named runs of a user of ours.
func (s *Store) NamedRun(_ context.Context, workspace, madeBy, threadID, name string) (runs.Named, error) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if id, ok := s.Named[name]; ok && workspace == "ours" && strings.HasPrefix(madeBy, "user:") && (threadID == "" || threadID == Thread) {
		return runs.Named{ID: id, ThreadID: Thread}, nil
	}
	return runs.Named{}, storage.ErrNotFound
}

// IsNameOfSeveral reports whether a name is "everywhere".
func (s *Store) IsNameOfSeveral(_ context.Context, _, _, name string) (bool, error) {
	return name == "everywhere", nil
}

// StopNamedRun begins the run named "late" instead, as a worker may at any time.
func (s *Store) StopNamedRun(_ context.Context, _, _, _, name string, notice outbox.Notice) error {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if name == "late" {
		s.Named[name] = Run
	}
	if s.Named[name] != "" || name == "unrecorded" {
		return storage.ErrNotFound
	}
	s.Stopped = append(s.Stopped, name+" "+notice.Text)
	return nil
}

// FollowRun implements runs.Store.
func (s *Store) FollowRun(string) (<-chan struct{}, func()) { return s.Changed, func() {} }

// AddEvents implements runs.Updates.
func (s *Store) AddEvents(ctx context.Context, run string, added runs.Added) error {
	if s.Page.Ended() {
		return runs.ErrEnded
	}
	if added.Answer != nil {
		answered := s.Answer != nil
		if err := s.AnswerRun(ctx, run, *added.Answer, added.AnswerKeys...); err != nil || answered {
			return err
		}
	}
	s.Added, s.key = append(s.Added, added.Messages...), added.Key
	for _, m := range added.Messages {
		s.Have(runs.Event{Seq: int64(len(s.Page.Events) + 5), Message: m})
	}
	return nil
}

// LaterRun knows the run of the agent "hook".
func (s *Store) LaterRun(_ context.Context, id string) (runs.Later, error) {
	if id != Run {
		return runs.Later{}, storage.ErrNotFound
	}
	return runs.Later{ID: Run, Thread: 7, Agent: "hook"}, nil
}

// AnswerRun notes the answer; a run has one.
func (s *Store) AnswerRun(_ context.Context, _ string, answer stream.Message, keys ...string) error {
	if s.Answer != nil {
		if slices.ContainsFunc(keys, func(key string) bool { return slices.Contains(s.AnswerKeys, key) }) {
			return nil
		}
		return runs.ErrAnswered
	}
	s.Answer, s.AnswerKeys = &answer, keys
	return nil
}

// Have adds events to the run, ms milliseconds after noon each.
func (s *Store) Have(events ...runs.Event) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.Page.Events = append(s.Page.Events, events...)
}

// End ends the run, whose notice or reply comes last, 9 ms after noon.
func (s *Store) End(state string, last *messages.Message) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.Page.State, s.Page.EndedAt = state, Noon.Add(9*time.Millisecond)
	if last != nil {
		s.messages = append(s.messages, *last)
	}
}

// Run is the id of the run.
const Run = "run-1"

// HookSecret is the secret of the agent "hook", which answers later.
const HookSecret = "the-secret-of-the-agent-hook"

// Working is a run in our workspace that has said something.
func Working() *Store {
	s := &Store{Changed: make(chan struct{}, 1), tickets: map[string]threads.Ticket{}, messages: []messages.Message{
		{Author: messages.ByHuman, Version: 1, Content: "so?", SenderID: "web:u-1", ClientMessageID: "c1", CreatedAt: Noon},
	}}
	s.Page.Status = runs.Status{ID: Run, ThreadID: Thread, Workspace: "ours", State: "running"}
	s.Have(Said(1, stream.Thought, "hm"), Said(4, stream.StreamingChunk, "Y"))
	return s
}

// Said returns a message of the run, seq milliseconds after noon.
func Said(seq int64, kind stream.Type, text string) runs.Event {
	return runs.Event{Seq: seq, Message: stream.Message{Type: kind, Text: text, Time: Noon.Add(time.Duration(seq) * time.Millisecond)}}
}

// Serve starts a server with the routes of the documents.
func (s *Store) Serve(t *testing.T) *httptest.Server {
	t.Helper()
	workspaces := []access.Workspace{
		{ID: "ours", Config: access.Config{Tokens: []access.Token{
			{ID: "olivia", Name: "Olivia", Token: secret.New(OwnToken)},
			{ID: "helper", Name: "Helper", Token: secret.New(AnyToken), Actor: AgentActor},
		}}},
		{ID: "theirs", Config: access.Config{Tokens: []access.Token{
			{ID: "olivia", Name: "Olivia", Token: secret.New("their-token")},
			{ID: "helper", Name: "Helper", Token: secret.New("their-agent"), Actor: AgentActor, Read: []string{"ours"}},
			{ID: "console", Name: "Console", Token: secret.New(ReaderToken), Read: []string{"ours"}},
		}}},
	}
	gate := access.Gate{
		Workspaces: func() []access.Workspace { return workspaces }, Guard: guard.New(func(string) {}), Tickets: s,
		Secrets: func() map[string]secret.Value {
			return map[string]secret.Value{"hook": secret.New(HookSecret), "other": secret.New("a-secret-of-another-hook")}
		},
	}
	streams := exchange.NewStreams()
	threads := webthreads.API{
		Gate: gate, Storage: files.Storage{Store: &s.Backend}, Inbox: &s.Backend, Recorded: &s.Backend, Limits: s, Places: s, Messages: s,
		Streams: streams, Now: func() time.Time { return Noon },
	}
	runs := webruns.API{
		Threads: threads, Runs: s, Stop: s.stop,
		Replies: webruns.Replies{Gate: gate, Runs: s, Wake: func(agent string, thread int64) { s.Woken++ }},
	}
	mux := http.NewServeMux()
	for _, route := range slices.Concat(gate.Routes(), threads.Routes(), runs.Routes()) {
		mux.HandleFunc(route.Pattern, gate.Handler(route))
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	t.Cleanup(streams.Close)
	return server
}

// Get returns the status and the body of a GET with a token.
func Get(t *testing.T, server *httptest.Server, token, path string, header ...string) (int, string) {
	t.Helper()
	return Ask(t, server, "GET "+path, "", append([]string{"Authorization", "Bearer " + token}, header...)...)
}

// The paths of the run's updates and of its stream.
const (
	Updates = "/runs/" + Thread + "/" + Run + "/updates"
	Follow  = "/runs/" + Thread + "/" + Run + "/stream"
)

// At returns a compact message some milliseconds after noon.
func At(ms, members string) string {
	return `{` + members + `,"ts":` + Stamp(ms) + `}`
}

// Stamp returns the time in milliseconds since 1970 some milliseconds after noon.
func Stamp(ms string) string { return NoonMillis[:len(NoonMillis)-len(ms)] + ms }

// NoonMillis is noon in milliseconds since 1970.
var NoonMillis = func() string { raw, _ := json.Marshal(Noon.UnixMilli()); return string(raw) }()
