package daemon_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/adapters/slack/slacktest"
	"parley/cmd/parley/internal/daemon"
	"parley/config"
	"parley/ingest/journal"
)

// patience bounds every wait of a test.
const patience = 30 * time.Second

// What the daemon of a test is configured with, and nobody may see.
const (
	signingSecret = "canary-signing-5f0d1c"
	apiKey        = "canary-key-91be27"
	ownToken      = "canary-own-c64a08"
	anyToken      = "canary-any-2d7f33"
)

const (
	room   = "C0GARDEN"
	direct = "D0OLIVIA"
	mara   = "U0MARA"
	thread = "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
)

// plan is what a test asks of its daemon. The zero plan has a Slack workspace
// acme and a web workspace ours, both of the agent helper, each message a turn.
type plan struct {
	dir     string // of an earlier daemon; a new one if empty
	helper  string // of the agent helper, beside its address
	slack   string // of acme's slack block, beside its account; "timeout: 5s" if empty
	acme    string // further lines of acme's file, such as "policy: {…}"
	turns   string // of both workspaces; "coalesce: 0s" if empty
	fake    slacktest.Options
	files   map[string]string // further files, by name
	without bool              // without any file: the built-in workspace
	clock   *clock            // of the daemon; one of its own if nil
	store   string            // the URL of a PostgreSQL; a file of its own if empty
	engine  journal.Engine    // the store, opened by the test; nil for the configured one
}

func (p plan) write(t *testing.T, replace *strings.Replacer) {
	t.Helper()
	turns := p.turns
	if turns == "" {
		turns = "coalesce: 0s"
	}
	calls := p.slack
	if calls == "" {
		calls = "timeout: 5s"
	}
	if p.store != "" {
		p.store = "store: " + p.store
	}
	if !strings.Contains(calls, "preview") {
		calls += ", preview: off, working: off"
	}
	files := map[string]string{
		"parley.yaml": `
listen: 127.0.0.1:0
shutdown: 3s
` + p.store + `
agents:
  - id: helper
    kind: openai
    base_url: AGENT/v1
    api_key: ` + apiKey + `
    model: m
    system_prompt: ""
    ` + p.helper + `
  - {id: echo, kind: echo}
`,
		"workspaces/acme.yaml": `
id: acme
platform: slack
agent: helper
slack: {mode: http, bot_token: ` + slacktest.Token + `, signing_secret: ` + signingSecret + `, api_url: "SLACK", post_rate: 0, ` + calls + `}
turns: {` + turns + `}
` + p.acme + "\n",
		"workspaces/ours.yaml": `
id: ours
platform: web
agent: helper
web:
  tokens:
    - {id: olivia, token: ` + ownToken + `, name: Olivia, senders: own}
    - {id: bridge, token: ` + anyToken + `, name: Bridge, senders: any}
turns: {` + turns + `}
`,
	}
	for name, content := range p.files {
		files[name] = content
	}
	for name, content := range files {
		write(t, filepath.Join(p.dir, name), replace.Replace(content))
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// house is a running daemon with its Slack, its agent, its clock and its log.
type house struct {
	t      *testing.T
	ctx    context.Context // the test's, bounded
	dir    string
	slack  *slacktest.Server
	model  *model
	clock  *clock
	log    *log
	engine journal.Engine // the store, if the test has opened it
	daemon *daemon.Daemon
	client *http.Client
	url    string
	stop   func() error
	places *strings.Replacer // AGENT and SLACK in a file's text
	last   time.Time         // of the newest Slack message
}

// open starts a daemon, which stops with the test.
func open(t *testing.T, p plan) *house {
	t.Helper()
	if p.dir == "" {
		p.dir = t.TempDir()
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	fake, err := slacktest.Start(p.fake)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fake.Close() })
	h := &house{t: t, ctx: ctx, dir: p.dir, slack: fake, model: newModel(t), clock: p.clock, log: new(log), engine: p.engine,
		client: &http.Client{Transport: new(http.Transport)}, last: time.Now()}
	if h.clock == nil {
		h.clock = new(clock)
	}
	h.places = strings.NewReplacer("AGENT", h.model.URL, "SLACK", fake.URL())
	path := ""
	if !p.without {
		p.write(t, h.places)
		path = filepath.Join(p.dir, "parley.yaml")
	}
	if err := h.start(path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.stop(); err != nil {
			t.Errorf("stop: %v\n%s", err, h.log)
		}
	})
	return h
}

// start runs a daemon in the house's folder; again, after stop.
func (h *house) start(path string) error {
	load := func() (*config.Config, error) { return config.Load(path) }
	if path == "" {
		load = func() (*config.Config, error) {
			c := config.Default()
			c.Listen, c.Store.Path, c.Shutdown = "127.0.0.1:0", filepath.Join(h.dir, "data/parley.db"), time.Second
			c.Attachments.Dir = filepath.Join(h.dir, "data/attachments")
			return c, nil
		}
	}
	c, err := load()
	if err != nil {
		return err
	}
	return h.run(daemon.Options{Config: c, Load: load, Now: h.clock.now, Engine: h.engine})
}

// run runs a daemon that logs to the house.
func (h *house) run(o daemon.Options) (err error) {
	level := new(slog.LevelVar)
	level.Set(slog.LevelDebug)
	o.Log = slog.New(slog.NewJSONHandler(h.log, &slog.HandlerOptions{Level: level}))
	ctx, cancel := context.WithCancel(context.WithoutCancel(h.ctx))
	if h.daemon, err = daemon.New(ctx, o); err != nil {
		cancel()
		return err
	}
	h.url = "http://" + h.daemon.Addr().String()
	ended := make(chan error, 1)
	go func() { ended <- h.daemon.Run(ctx) }()
	h.stop = sync.OnceValue(func() error {
		h.client.CloseIdleConnections()
		cancel()
		return <-ended
	})
	return nil
}

// restart stops the daemon and starts it again on the same store.
func (h *house) restart() {
	h.t.Helper()
	if err := h.stop(); err != nil {
		h.t.Fatalf("stop: %v\n%s", err, h.log)
	}
	if err := h.start(filepath.Join(h.dir, "parley.yaml")); err != nil {
		h.t.Fatal(err)
	}
}

// answer is what the daemon said to a request.
type answer struct {
	status int
	body   string
	header http.Header
}

// send makes a request of the daemon.
func (h *house) send(request *http.Request, err error) answer {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
	response, err := h.client.Do(request)
	if err != nil {
		h.t.Fatalf("%v\n%s", err, h.log)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return answer{response.StatusCode, string(body), response.Header}
}

func (h *house) get(path string) answer {
	h.t.Helper()
	return h.send(http.NewRequestWithContext(h.ctx, http.MethodGet, h.url+path, nil))
}

// metric is a figure of /metrics, as it is written there; 0 where it is not.
func (h *house) metric(name string) float64 {
	h.t.Helper()
	for line := range strings.Lines(h.get("/metrics").body) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			value, err := strconv.ParseFloat(strings.TrimSpace(rest), 64)
			if err != nil {
				h.t.Fatal(err)
			}
			return value
		}
	}
	return 0
}

// again waits a moment between two questions of the same; false where the test's
// time is over.
func (h *house) again() bool {
	select {
	case <-time.After(5 * time.Millisecond):
		return true
	case <-h.ctx.Done():
		return false
	}
}

// state is what has been counted, for a test that fails.
func (h *house) state() string {
	response, err := http.Get(h.url + "/metrics") // the test's time is over
	if err != nil {
		return err.Error() + "\n"
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	return regexp.MustCompile("(?m)^(#|go_|process_).*\n").ReplaceAllString(string(body), "")
}

// awaitMetric asks for a figure until it has the value.
func (h *house) awaitMetric(name string, want float64) {
	h.t.Helper()
	for end := time.Now().Add(patience / 2); h.metric(name) != want; {
		if time.Now().After(end) || !h.again() {
			h.t.Fatalf("%s is not %v but\n%s%s", name, want, h.state(), h.log)
		}
	}
}

// posts waits for so many posts, and returns all there are.
func (h *house) posts(n int) []slacktest.Post {
	h.t.Helper()
	posts, err := h.slack.Await(h.ctx, n)
	if err != nil {
		h.t.Fatalf("%v\n%s", err, h.log)
	}
	return posts
}

// said is a message of mara's in the garden that nobody has seen before.
func (h *house) said(text string) slacktest.Message {
	h.last = h.last.Add(time.Millisecond)
	return slacktest.Message{Channel: room, User: mara, Text: text, TS: slacktest.Timestamp(h.last)}
}

// hook delivers a body as Slack does, and returns the answer.
func (h *house) hook(body []byte) answer {
	h.t.Helper()
	return h.send(slacktest.NewRequest(h.ctx, h.url+"/hooks/slack/acme", signingSecret, time.Now(), body))
}

// accept delivers a body that must be acknowledged.
func (h *house) accept(body []byte) {
	h.t.Helper()
	if got := h.hook(body); got.status != http.StatusOK {
		h.t.Fatalf("the hook answered %d %s\n%s", got.status, got.body, h.log)
	}
}

// mention says something to the bot in the garden; it returns the message.
func (h *house) mention(text string) slacktest.Message {
	h.t.Helper()
	m := h.said("<@" + slacktest.BotUser + "> " + text)
	h.accept(m.Mention())
	return m
}

// inner is the event_callback of an event that slacktest has no words for.
func inner(event string) []byte {
	return []byte(`{"type":"event_callback","team_id":"` + slacktest.Team + `","api_app_id":"` + slacktest.App + `","event":` + event +
		`,"authorizations":[{"team_id":"` + slacktest.Team + `","user_id":"` + slacktest.BotUser + `","is_bot":true}]}`)
}

func edited(m slacktest.Message, text string) []byte {
	return inner(`{"type":"message","subtype":"message_changed","channel":"` + m.Channel + `","channel_type":"channel","ts":"` + m.TS + `9",
		"message":{"type":"message","user":"` + m.User + `","text":` + quoted(text) + `,"ts":"` + m.TS + `","edited":{"user":"` + m.User + `","ts":"` + m.TS + `"}},
		"previous_message":{"type":"message","user":"` + m.User + `","text":` + quoted(m.Text) + `,"ts":"` + m.TS + `"}}`)
}

func deleted(m slacktest.Message) []byte {
	return inner(`{"type":"message","subtype":"message_deleted","channel":"` + m.Channel + `","channel_type":"channel","ts":"` + m.TS + `","deleted_ts":"` + m.TS + `"}`)
}

func quoted(s string) string {
	raw, _ := json.Marshal(s) // a text always encodes
	return string(raw)
}

// web makes a call of the API with a token.
func (h *house) web(method, path, token, body string) answer {
	h.t.Helper()
	request, err := http.NewRequestWithContext(h.ctx, method, h.url+"/api/v1/workspaces/"+path, strings.NewReader(body))
	if err == nil {
		request.Header.Set("Content-Type", "application/json")
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
	}
	return h.send(request, err)
}

// typed says something as Olivia in the web thread.
func (h *house) typed(content string, more ...string) answer {
	h.t.Helper()
	body := `{"thread_id":"` + thread + `","content":` + quoted(content) + strings.Join(append([]string{""}, more...), ",") + `}`
	got := h.web(http.MethodPost, "ours/messages", ownToken, body)
	if got.status != http.StatusAccepted {
		h.t.Fatalf("%d %s\n%s", got.status, got.body, h.log)
	}
	return got
}

// decode reads JSON.
func decode[T any](t *testing.T, raw string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(raw), &v); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	return v
}

// clock is the system's, set forward at will. It stands still if at is set.
type clock struct {
	at    time.Time
	mu    sync.Mutex
	ahead time.Duration
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.at
	if now.IsZero() {
		now = time.Now()
	}
	return now.Add(c.ahead)
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += d
}

// log keeps what was logged.
type log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// String is all that was logged.
func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func same[T any](t *testing.T, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
