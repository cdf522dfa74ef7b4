package daemon_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
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

	"parley/adapters"
	"parley/adapters/slack"
	"parley/adapters/slack/slacktest"
	"parley/cmd/parley/internal/daemon"
	"parley/config"
	"parley/ingest/journal/journaltest"
	"parley/ingest/journal/storage"
)

// testTimeout bounds every wait of a test. A busy machine can take much longer than an idle one.
const testTimeout = 5 * time.Minute

// shutdown bounds the stop of a daemon. Each phase of a stop has a part of it.
const shutdown = 30 * time.Second

// The secrets in the configuration of a test. They must not appear anywhere.
const (
	signingSecret = "canary-signing-5f0d1c"
	apiKey        = "canary-key-91be27"
	ownToken      = "canary-own-c64a08-2f9b51e7"
	anyToken      = "canary-any-2d7f33-8a06c4d1"
)

const (
	room   = "C0GARDEN"
	direct = "D0OLIVIA"
	mara   = "U0MARA"
	thread = "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
)

// plan configures the daemon of a test. The zero plan has a Slack workspace acme and a web
// workspace ours. Both have the agent helper, and each message is a turn.
type plan struct {
	dir     string // the folder of an earlier daemon; a new folder if empty
	helper  string // further lines of the agent helper
	slack   string // further keys of acme's slack block; "timeout: 5s" if empty
	acme    string // further lines of acme's file, such as "policy: {…}"
	turns   string // the turns of both workspaces; "coalesce: 0s" if empty
	fake    slacktest.Options
	files   map[string]string // further files, by name; an empty one is left out
	without bool              // no files: the built-in workspace
	clock   *clock            // the daemon's; a new one if nil
	steps   bool              // the clock may step back; the daemon's waits don't, as without a clock of the test
	metrics string            // the token of the metrics; none if empty
	main    string            // further lines of parley.yaml
	store   string            // the URL of a PostgreSQL store; an embedded store if empty
	engine  storage.Engine    // the store that the test has opened; nil for the configured one
	hello   bool              // collect the texts for the operator
	stop    time.Duration     // the limit of a stop; shutdown if zero
	alerts  time.Duration     // between two looks for troubles; the daemon's own if zero

	platforms []adapters.Platform // nil for the daemon's own
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
	if p.stop == 0 {
		p.stop = shutdown
	}
	if p.store != "" {
		p.store = "store: " + p.store
	}
	if !strings.Contains(calls, "preview") {
		calls += ", preview: off, working: off"
	}
	if !strings.Contains(p.helper, "notes:") { // the time in the notes changes
		p.helper = "notes: []\n    " + p.helper
	}
	files := map[string]string{
		"parley.yaml": `
listen: 127.0.0.1:0
shutdown: ` + p.stop.String() + `
metrics: {token: "` + p.metrics + `"}
` + p.store + `
` + p.main + `
agents:
  - id: helper
    kind: openai
    base_url: AGENT/v1
    api_key: ` + apiKey + `
    model: m
    system_prompt: ""
    ` + p.helper + `
  - {id: echo, kind: echo}
console: {listen: "127.0.0.1:0"}
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
		if content == "" {
			continue
		}
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

// withSlack returns the platforms, with another constructor of Slack's adapter.
func withSlack(make func(workspace string, c *slack.Config) adapters.Adapter) []adapters.Platform {
	platforms := config.Platforms()
	for i := range platforms {
		if c, ok := platforms[i].Config().(*slack.Config); ok && c != nil {
			platforms[i].New = func(workspace string, c adapters.Config) adapters.Adapter { return make(workspace, c.(*slack.Config)) }
		}
	}
	return platforms
}

// harness is a running daemon with its fake Slack, its agent, its clock and its log.
type harness struct {
	localFile string // the token of the built-in workspace
	operator  string // the token of the metrics; empty for none
	t         *testing.T
	ctx       context.Context // the test's, with a time limit
	dir       string
	slack     *slacktest.Server
	model     *model
	clock     *clock
	steps     bool
	log       *log
	engine    storage.Engine // the store that the test has opened, or nil
	alerts    time.Duration  // between two looks for troubles
	daemon    *daemon.Daemon
	client    *http.Client
	hello     chan string // texts for the operator
	url       string
	stop      func() error
	places    *strings.Replacer // replaces AGENT and SLACK in a file
	last      time.Time         // of the newest Slack message

	platforms []adapters.Platform // of the plan
}

// open starts a daemon and stops it at the end of the test.
func open(t *testing.T, p plan) *harness {
	t.Helper()
	if p.dir == "" {
		p.dir = journaltest.Dir(t)
	}
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	t.Cleanup(cancel)
	fake, err := slacktest.Start(p.fake)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fake.Close() })
	h := &harness{t: t, ctx: ctx, dir: p.dir, operator: p.metrics, slack: fake, model: newModel(t), clock: p.clock, steps: p.steps, log: new(log), engine: p.engine, alerts: p.alerts, platforms: p.platforms,
		client: &http.Client{Transport: new(http.Transport)}, last: time.Now()}
	if h.clock == nil {
		h.clock = new(clock)
	}
	if p.hello {
		h.hello = make(chan string, 64)
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

// start starts a daemon in the harness's folder, also after stop.
func (h *harness) start(path string) error {
	load := func() (*config.Config, error) { return config.Load(path) }
	if path == "" {
		load = func() (*config.Config, error) {
			c := config.Default()
			c.Listen, c.Store.Path, c.Shutdown = "127.0.0.1:0", filepath.Join(h.dir, "data/parley.db"), shutdown
			c.Attachments.Dir, c.Console.Listen = filepath.Join(h.dir, "data/attachments"), "127.0.0.1:0"
			return c, nil
		}
	}
	c, err := load()
	if err != nil {
		return err
	}
	o := daemon.Options{Config: c, Load: load, Now: h.clock.now, Engine: h.engine, Platforms: h.platforms, AlertsEvery: h.alerts}
	if h.steps {
		begun := h.clock.now()
		o.Now, o.Wall = func() time.Time { return begun.Add(time.Since(begun)) }, h.clock.now
	}
	return h.run(o)
}

// run starts a daemon that logs to the harness.
func (h *harness) run(o daemon.Options) (err error) {
	o.Log = slog.New(slog.NewJSONHandler(h.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if h.hello != nil {
		o.Chat, o.Console, o.Hello = "parley chat", "parley console", func(text string) { h.hello <- text }
	}
	h.localFile = filepath.Join(filepath.Dir(o.Config.Attachments.Dir), "local.token")
	if o.Config.Store.Path != "" {
		h.localFile = filepath.Join(filepath.Dir(o.Config.Store.Path), "local.token")
	}
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

// restart stops the daemon and starts it again on the same store, and calls meanwhile in between.
func (h *harness) restart(meanwhile ...func()) {
	h.t.Helper()
	if err := h.stop(); err != nil {
		h.t.Fatalf("stop: %v\n%s", err, h.log)
	}
	for _, do := range meanwhile {
		do()
	}
	if err := h.start(filepath.Join(h.dir, "parley.yaml")); err != nil {
		h.t.Fatal(err)
	}
}

// answer is the daemon's response to a request.
type answer struct {
	status int
	body   string
	header http.Header
}

// send sends a request to the daemon. The answer must be as openapi.yaml describes it.
func (h *harness) send(request *http.Request, err error) answer {
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
	got := answer{response.StatusCode, string(body), response.Header}
	readDescription(h.t).check(h.t, request, got)
	return got
}

func (h *harness) get(path string) answer {
	h.t.Helper()
	return h.send(http.NewRequestWithContext(h.ctx, http.MethodGet, h.url+path, nil))
}

// metric returns a figure of /metrics; 0 if it is missing.
func (h *harness) metric(name string) float64 {
	h.t.Helper()
	for line := range strings.Lines(h.forwarded("/metrics", h.operator).body) {
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

// poll waits a moment before the next check of a condition. It returns false after the end of
// the test's time.
func (h *harness) poll() bool {
	select {
	case <-time.After(5 * time.Millisecond):
		return true
	case <-h.ctx.Done():
		return false
	}
}

// state returns Parley's figures for the message of a failed test.
func (h *harness) state() string {
	response, err := http.Get(h.url + "/metrics") // h.ctx has ended
	if err != nil {
		return err.Error() + "\n"
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	return regexp.MustCompile("(?m)^(#|go_|process_).*\n").ReplaceAllString(string(body), "")
}

// awaitMetric reads a figure until it has the value.
func (h *harness) awaitMetric(name string, want float64) {
	h.t.Helper()
	for h.metric(name) != want {
		if !h.poll() {
			h.t.Fatalf("%s is not %v:\n%s%s", name, want, h.state(), h.log)
		}
	}
}

// posts waits for a number of posts, and returns all posts.
func (h *harness) posts(n int) []slacktest.Post {
	h.t.Helper()
	posts, err := h.slack.Await(h.ctx, n)
	if err != nil {
		h.t.Fatalf("%v\n%s", err, h.log)
	}
	return posts
}

// newMessage returns a new message of mara's in the garden.
func (h *harness) newMessage(text string) slacktest.Message {
	h.last = h.last.Add(time.Millisecond)
	return slacktest.Message{Channel: room, User: mara, Text: text, TS: slacktest.Timestamp(h.last)}
}

// hook delivers a body as Slack does.
func (h *harness) hook(body []byte) answer {
	h.t.Helper()
	return h.send(slacktest.NewRequest(h.ctx, h.url+"/hooks/slack/acme", signingSecret, time.Now(), body))
}

// accept delivers a body that the daemon must acknowledge. Like Slack, it delivers the body again if the store of a
// slow machine is busy for too long.
func (h *harness) accept(body []byte) {
	h.t.Helper()
	got := h.hook(body)
	for got.status == http.StatusServiceUnavailable && h.poll() {
		got = h.hook(body)
	}
	if got.status != http.StatusOK {
		h.t.Fatalf("the hook answered %d %s\n%s", got.status, got.body, h.log)
	}
}

// mention sends a mention of the bot in the garden.
func (h *harness) mention(text string) slacktest.Message {
	h.t.Helper()
	m := h.newMessage("<@" + slacktest.BotUser + "> " + text)
	h.accept(m.Mention())
	return m
}

// inner returns the event_callback of an event that slacktest has no function for.
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

// web calls the API with a token.
func (h *harness) web(method, path, token, body string) answer {
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

// local returns the token of the built-in workspace; empty before there is one.
func (h *harness) local() string {
	h.t.Helper()
	content, err := os.ReadFile(h.localFile)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		h.t.Fatal(err)
	}
	return strings.TrimSpace(string(content))
}

// postWeb posts a message of Olivia's to the web thread.
func (h *harness) postWeb(content string, more ...string) answer {
	h.t.Helper()
	body := `{"thread_id":"` + thread + `","content":` + quoted(content) + strings.Join(append([]string{""}, more...), ",") + `}`
	got := h.web(http.MethodPost, "ours/messages", ownToken, body)
	if got.status != http.StatusAccepted {
		h.t.Fatalf("%d %s\n%s", got.status, got.body, h.log)
	}
	return got
}

// takesInput reads what the daemon sends to an agent, and reports whether all of it came. The daemon ends with the test, maybe amid a
// request.
func takesInput(t *testing.T, w http.ResponseWriter, r *http.Request, input any) bool {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return false
	}
	if err := json.Unmarshal(raw, input); err != nil {
		t.Errorf("an agent got %q: %v", raw, err)
	}
	return true
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

// clock is the system's clock plus an offset. It stands still if at is set.
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

// log collects the daemon's log.
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

// String returns the whole log.
func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// warnings returns the number of logged warnings that have an attribute.
func (h *harness) warnings(attribute string) (n int) {
	h.t.Helper()
	for line := range strings.Lines(h.log.String()) {
		record := decode[map[string]any](h.t, line)
		if _, ok := record[attribute]; ok && record["level"] == "WARN" {
			n++
		}
	}
	return n
}

// same fails the test if the values differ.
func same[T any](t *testing.T, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
