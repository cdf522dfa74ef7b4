package commands

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/adapters/browsertest"
)

// clientTimeout bounds a test of the client in one place.
const clientTimeout = 90 * time.Second

// told is one report of a scenario of testdata/sdk.mjs.
type told struct {
	Handle *struct {
		RunID string `json:"run_id"`
	}
	Message json.RawMessage // a compact message
	Waiting int             // the number of the attempt that the client waits for
	Last    json.RawMessage
	History []json.RawMessage
	Done    bool
	Fault   string
}

// platform runs scenarios of the client in one place.
type platform interface {
	// begin starts a scenario.
	begin(name string, env any)
	// next waits for the next report of the scenario.
	next() told
}

// eachPlatform runs a test in a browser and in Node. The module and the API are those at base. The page
// is of an origin that the daemon must admit.
func eachPlatform(t *testing.T, test func(t *testing.T, at func(base string) platform, origin string)) {
	t.Run("browser", func(t *testing.T) {
		tab := browsertest.Open(t)
		var mu sync.Mutex
		module := ""
		pages := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			if r.URL.Path == "/sdk.mjs" {
				w.Header().Set("Content-Type", "text/javascript")
				http.ServeFile(w, r, "testdata/sdk.mjs")
				return
			}
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprintf(w, pageOfClient, module)
		}))
		t.Cleanup(pages.Close)
		origin := strings.Replace(pages.URL, "127.0.0.1", "localhost", 1) // another origin than the daemon's
		test(t, func(base string) platform {
			mu.Lock()
			module = base + "/sdk/parley.js"
			mu.Unlock()
			tab.Goto(origin)
			tab.Wait("window.begin")
			return inBrowser{tab}
		}, origin)
	})
	t.Run("node", func(t *testing.T) {
		path, err := exec.LookPath("node")
		if err != nil {
			t.Skip("skipped: there is no Node")
		}
		test(t, func(base string) platform { return startNode(t, path, base) }, "https://app.example.com")
	})
}

const pageOfClient = `<!doctype html><link rel=icon href="data:,"><script type=module>
import * as sdk from "%s"
import {play} from "/sdk.mjs"
const told = []
let wake = () => {}
window.next = async () => {
	while (!told.length) await new Promise(resolve => wake = resolve)
	return told.shift()
}
window.begin = (name, env) => { play(name, sdk, env, x => { told.push(x); wake() }) }
</script>`

type inBrowser struct{ tab *browsertest.Tab }

func (b inBrowser) begin(name string, env any) {
	raw, _ := json.Marshal(env) // maps of texts always encode
	browsertest.Eval[*bool](b.tab, fmt.Sprintf("begin(%q, %s), null", name, raw))
}

func (b inBrowser) next() told { return browsertest.Eval[told](b.tab, "next()") }

type inNode struct {
	t     *testing.T
	stdin io.Writer
	lines *bufio.Scanner
}

const nodeScript = `import {createInterface} from 'node:readline'
import * as sdk from './parley.mjs'
import {play} from './sdk.mjs'
for await (const line of createInterface({input: process.stdin})) {
	const {name, env} = JSON.parse(line)
	play(name, sdk, env, x => console.log(JSON.stringify(x)))
}
`

// startNode starts Node with the module that the daemon serves.
func startNode(t *testing.T, node, base string) platform {
	t.Helper()
	dir := t.TempDir()
	response, err := http.Get(base + "/sdk/parley.js")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	module, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("the module: %s %v", response.Status, err)
	}
	scenarios, err := os.ReadFile("testdata/sdk.mjs")
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, "parley.mjs", string(module))
	write(t, dir, "sdk.mjs", string(scenarios))
	write(t, dir, "main.mjs", nodeScript)
	ctx, cancel := context.WithTimeout(t.Context(), clientTimeout)
	t.Cleanup(cancel)
	command := exec.CommandContext(ctx, node, filepath.Join(dir, "main.mjs"))
	command.Stderr = os.Stderr
	stdin, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	t.Cleanup(func() {
		_ = stdin.Close()
		for lines.Scan() {
			continue
		}
		_ = command.Wait()
	})
	return inNode{t, stdin, lines}
}

func (n inNode) begin(name string, env any) {
	n.t.Helper()
	if err := json.NewEncoder(n.stdin).Encode(map[string]any{"name": name, "env": env}); err != nil {
		n.t.Fatal(err)
	}
}

func (n inNode) next() (x told) {
	n.t.Helper()
	if !n.lines.Scan() {
		n.t.Fatalf("Node has ended: %v", n.lines.Err())
	}
	if err := json.Unmarshal(n.lines.Bytes(), &x); err != nil {
		n.t.Fatalf("%s: %v", n.lines.Bytes(), err)
	}
	return x
}

// clientDir writes the configuration of a daemon with the agent of a model, or with echo if model is
// empty.
func clientDir(t *testing.T, origin, model string) string {
	t.Helper()
	dir, agent := t.TempDir(), "echo"
	agents := "agents: [{id: echo, kind: echo}]\n"
	if model != "" {
		agent, agents = "m", "agents: [{id: m, kind: openai, model: m, base_url: \""+model+"/v1\"}]\n"
	}
	write(t, dir, "parley.yaml", "listen: 127.0.0.1:0\n"+agents)
	write(t, dir, "workspaces/ours.yaml", "id: ours\nplatform: web\nagent: "+agent+"\nturns: {coalesce: 0s}\nweb: {origins: [\""+origin+"\"], tokens: [{id: a, token: "+webToken+", name: c}]}\n")
	return dir
}

// env returns the options with which a scenario calls a daemon.
func env(base string) any {
	return map[string]any{"client": map[string]string{"baseUrl": base, "token": webToken}}
}

// TestClient plays the scenarios that need one daemon with the echo agent.
func TestClient(t *testing.T) {
	t.Parallel()
	eachPlatform(t, func(t *testing.T, at func(string) platform, origin string) {
		base := "http://" + start(t, clientDir(t, origin, ""), os.Args[0], "run").address()
		p := at(base)
		for _, name := range []string{"vectors", "phases", "threads"} {
			p.begin(name, env(base))
			if x := p.next(); !x.Done || x.Fault != "" {
				t.Errorf("%s: %+v", name, x)
			}
		}
		if b, ok := p.(inBrowser); ok {
			for _, fault := range b.tab.Faults() {
				if !strings.Contains(fault, "Failed to load resource") { // the refusals that the scenario asks for
					t.Errorf("the page has a fault: %s", fault)
				}
			}
		}
	})
}

// line leads the connections of a client to a daemon. The test cuts them.
type line struct {
	net.Listener
	mu   sync.Mutex
	to   string
	open map[net.Conn]bool
}

func newLine(t *testing.T, to string) *line {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &line{Listener: l, to: to, open: map[net.Conn]bool{}}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { w.serve(from) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		w.lead("")
		serving.Wait()
	})
	return w
}

// serve carries the bytes of one connection until it is cut.
func (l *line) serve(from net.Conn) {
	defer from.Close()
	l.mu.Lock()
	address := l.to
	l.open[from] = true
	l.mu.Unlock()
	to, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(to, from)
		_ = to.Close()
	}()
	_, _ = io.Copy(from, to)
	_ = from.Close()
	<-done
}

// lead cuts all connections. New ones go to another address; none if it is empty.
func (l *line) lead(to string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.to = to
	for c := range l.open {
		_ = c.Close()
	}
	clear(l.open)
}

// cut cuts all connections.
func (l *line) cut() { l.lead(l.to) }

// countingModel is a model whose answer comes from the test, in pieces.
type countingModel struct {
	*httptest.Server
	asked chan chan string // for each request the channel of its pieces; closed after the last one
}

func newCountingModel(t *testing.T) *countingModel {
	m := &countingModel{asked: make(chan chan string)}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		pieces := make(chan string)
		select {
		case m.asked <- pieces:
		case <-r.Context().Done():
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for {
			select {
			case piece, more := <-pieces:
				if !more {
					_, _ = io.WriteString(w, `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
					return
				}
				_, _ = fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%q}}]}\n\n", piece)
				w.(http.Flusher).Flush()
			case <-r.Context().Done():
				return
			}
		}
	}))
	t.Cleanup(m.Close)
	return m
}

// next waits for the next request to the model.
func (m *countingModel) next(t *testing.T) chan string {
	t.Helper()
	select {
	case pieces := <-m.asked:
		return pieces
	case <-time.After(clientTimeout):
		t.Fatal("the model was not asked")
		return nil
	}
}

// say says a piece as the model.
func say(t *testing.T, pieces chan string, text string) {
	t.Helper()
	select {
	case pieces <- text:
	case <-time.After(clientTimeout):
		t.Fatalf("nobody takes %q of the model", text)
	}
}

// compact is a compact message of the client.
type compact struct {
	T    int
	M, I string
	Ts   int64
}

// listener collects what the client hears of a run.
type listener struct {
	t     *testing.T
	p     platform
	raw   []json.RawMessage
	heard []compact
	waits int
}

// hear waits until the client has heard a message.
func (l *listener) hear(want func(m compact) bool) {
	l.t.Helper()
	for {
		x := l.p.next()
		switch {
		case x.Message != nil:
			var m compact
			if err := json.Unmarshal(x.Message, &m); err != nil {
				l.t.Fatal(err)
			}
			l.raw, l.heard = append(l.raw, x.Message), append(l.heard, m)
			if want(m) {
				return
			}
		case x.Waiting > 0:
			l.waits++
		default:
			l.t.Fatalf("the client told %+v after %+v", x, l.heard)
		}
	}
}

// say says pieces as the model. The client hears each before the next one.
func (l *listener) say(pieces chan string, first, last int) {
	l.t.Helper()
	for n := first; n <= last; n++ {
		text := fmt.Sprintf("%d ", n)
		say(l.t, pieces, text)
		l.hear(func(m compact) bool { return m.T == 12 && strings.HasSuffix(m.M, text) })
	}
}

// TestClientOverLostConnections cuts the connections of a client during an answer, and kills the daemon.
// The client hears each message once, and the same ones that are stored.
func TestClientOverLostConnections(t *testing.T) {
	t.Parallel()
	eachPlatform(t, func(t *testing.T, at func(string) platform, origin string) {
		model := newCountingModel(t)
		dir := clientDir(t, origin, model.URL)
		daemon := start(t, dir, os.Args[0], "run")
		way := newLine(t, daemon.address())
		base := "http://" + way.Addr().String()
		l := &listener{t: t, p: at(base)}
		l.p.begin("run", env(base))
		if x := l.p.next(); x.Handle == nil {
			t.Fatalf("%+v", x)
		}
		first := model.next(t)
		l.say(first, 1, 3)
		way.cut()
		l.say(first, 4, 6)
		way.lead("127.0.0.1:1") // nobody answers
		if err := daemon.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = daemon.cmd.Wait() // killed by the test
		second := start(t, dir, os.Args[0], "run")
		pieces := model.next(t)
		say(t, pieces, "0 ")
		way.lead(second.address())
		l.hear(func(m compact) bool { return m.T == 12 && m.M == "0 " })
		l.say(pieces, 1, 3)
		way.cut()
		l.say(pieces, 4, 6)
		close(pieces)
		l.hear(func(m compact) bool { return m.T == 4 })
		l.check()
	})
}

// check compares the messages that the client has heard with the stored ones, and takes the end of the scenario.
func (l *listener) check() {
	l.t.Helper()
	texts, lasting, before := map[string]string{}, []json.RawMessage{}, int64(0)
	for i, m := range l.heard {
		if m.Ts <= before && i > 0 {
			l.t.Errorf("the message %s comes after one of %d", l.raw[i], before)
		}
		before = m.Ts
		if m.T == 12 {
			texts[m.I] += m.M
			continue
		}
		lasting = append(lasting, l.raw[i])
		if m.T == 7 && (texts[m.I] != m.M || m.M != "0 1 2 3 4 5 6 ") {
			l.t.Errorf("the answer is %q, and its chunks %q", m.M, texts)
		}
	}
	if x := l.p.next(); x.Last == nil {
		l.t.Errorf("the end: %+v", x)
	}
	stored := l.p.next().History
	if diff := cmp.Diff(indented(stored), indented(lasting)); diff != "" {
		l.t.Errorf("the client heard something else than is stored (-stored +heard): %s", diff)
	}
	if x := l.p.next(); !x.Done || x.Fault != "" {
		l.t.Errorf("%+v", x)
	}
	if l.waits < 3 {
		l.t.Errorf("%d waits, want one for each loss", l.waits)
	}
	if b, ok := l.p.(inBrowser); ok {
		b.tab.Faults() // the lost connections
	}
}

func indented(list []json.RawMessage) (texts []string) {
	for _, raw := range list {
		texts = append(texts, string(raw))
	}
	return texts
}

// TestClientFiles checks how the files of the client are served.
func TestClientFiles(t *testing.T) {
	t.Parallel()
	const origin = "https://app.example.com"
	base := "http://" + start(t, clientDir(t, origin, ""), os.Args[0], "run").address()
	client := &http.Client{Timeout: time.Minute}
	get := func(path string, header ...string) *http.Response {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(header); i += 2 {
			request.Header.Set(header[i], header[i+1])
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		return response
	}
	for path, kind := range map[string]string{"/sdk/parley.js": "text/javascript; charset=utf-8", "/sdk/parley.d.ts": "text/plain; charset=utf-8"} {
		first := get(path, "Origin", origin)
		if h := first.Header; first.StatusCode != http.StatusOK || h.Get("Content-Type") != kind || h.Get("Access-Control-Allow-Origin") != origin || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d %v", path, first.StatusCode, h)
		}
		if again := get(path, "If-None-Match", first.Header.Get("ETag")); again.StatusCode != http.StatusNotModified {
			t.Errorf("%s: a caller who has it gets %d", path, again.StatusCode)
		}
		if other := get(path, "Origin", "https://evil.example.com"); other.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: a page of another origin may load it", path)
		}
	}
}
