package daemon

import (
	"net/http"
	"strings"
	"time"

	"parley/adapters"
	"parley/adapters/web"
	"parley/adapters/web/access"
	"parley/adapters/web/exchange"
	"parley/adapters/web/runs"
	"parley/adapters/web/speak"
	"parley/adapters/web/static"
	"parley/adapters/web/threads"
	"parley/adapters/web/tools"
	"parley/adapters/web/ui"
	"parley/config"
	"parley/ingest/event"
)

const (
	// headerTimeout and headerBytes bound the headers of a caller that is not
	// authenticated yet.
	headerTimeout = 5 * time.Second
	headerBytes   = 8 << 10
	// requestTimeout bounds a whole request with its body.
	requestTimeout = 30 * time.Second
	idleTimeout    = 30 * time.Second
)

// route is a route of the daemon.
type route struct {
	pattern string // of http.ServeMux
	serve   http.HandlerFunc
}

// routes returns all routes. The package web describes them in openapi.yaml.
func (d *Daemon) routes(api web.API) []route {
	routes := []route{
		{"POST /hooks/{platform}/{workspace}", d.hook},
		{"POST /hooks/{platform}/{workspace}/{secret}", d.hook},
		{"POST /api/v1/workspaces/{workspace}/messages", api.Speak.PostMessage},
		{"POST /api/v1/workspaces/{workspace}/posts", api.Speak.Post},
		{"GET /api/v1/workspaces/{workspace}/threads", api.Threads.ListThreads},
		{"GET /api/v1/workspaces/{workspace}/threads/{thread_id}/messages", api.Threads.ListMessages},
		{"POST /api/v1/runs/{run_id}/reply", api.Runs.Replies.Post},
		{"POST /api/v1/runs/{run_id}/push", api.Runs.Replies.Push},
		{"GET /storage/v1/object/sign/{bucket}/{path...}", api.Storage.Get},
		{"GET /{$}", d.operators(d.root)},
		{"GET /openapi.json", web.OpenAPI},
		{"GET /sdk/parley.js", static.File("parley.js")},
		{"GET /sdk/parley.d.ts", static.File("parley.d.ts")},
		{"GET /chat", ui.Chat(func() bool { return len(d.web()) > 0 })},
		{"GET /ui/{file}", ui.File},
		{"GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) }},
		{"GET /readyz", d.operators(d.ready)},
		{"GET /metrics", d.operators(d.figures)},
	}
	for _, r := range api.Routes() {
		routes = append(routes, route{r.Pattern, api.Gate.Handler(r)})
	}
	return routes
}

// newServer returns the HTTP server with all its routes.
func (d *Daemon) newServer() *http.Server {
	mux := http.NewServeMux()
	api := d.api()
	d.Turns.Tools = runTools{d, api.Tools}
	for _, r := range d.routes(api) {
		mux.HandleFunc(r.pattern, r.serve)
	}
	mux.HandleFunc(everyPath, func(w http.ResponseWriter, r *http.Request) { unrouted(mux, w, r) })
	server := &http.Server{
		Handler:           d.traces.Handler(api.Gate.WithOrigins(mux)),
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       requestTimeout,
		WriteTimeout:      requestTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    headerBytes,
	}
	server.RegisterOnShutdown(d.streams.Close)
	d.guard.Protect(server)
	return server
}

// unrouted answers a request that no route takes, in the API's form of an error.
func unrouted(mux *http.ServeMux, w http.ResponseWriter, r *http.Request) {
	var takes []string
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		other := *r
		other.Method = method
		if _, pattern := mux.Handler(&other); pattern != everyPath {
			takes = append(takes, method)
		}
	}
	status, code, message := http.StatusNotFound, "not-found", "there is no such address; /openapi.json has all"
	if len(takes) > 0 {
		allow := strings.Join(takes, ", ")
		w.Header().Set("Allow", allow)
		status, code, message = http.StatusMethodNotAllowed, "method", "this address takes only "+allow
	}
	_ = exchange.Respond(w, status, map[string]any{"error": map[string]string{"code": code, "message": message}})
}

// everyPath is the pattern of the requests that no route takes.
const everyPath = "/"

// hook passes a request to its workspace's adapter. A request to an unknown workspace goes to an adapter
// without secrets, which refuses every caller, so that neither the answer nor its time tells which
// workspaces exist.
func (d *Daemon) hook(w http.ResponseWriter, r *http.Request) {
	name := event.Platform(r.PathValue("platform"))
	hook := noHooks[name]
	if a := d.account(r.PathValue("workspace")); a != nil && a.Platform == name {
		hook, _ = a.adapter.(adapters.Hook)
	}
	if hook == nil {
		d.guard.Refuse(w, d.guard.Unauthorized(w, r, "no-such-hook"))
		return
	}
	hook.Handler(timed{d.Ingest, d.metrics, d.storage}, d.guard).ServeHTTP(w, r)
}

// noHooks are the adapters without secrets, by platform. A platform without a hook has none.
var noHooks = func() map[event.Platform]adapters.Hook {
	hooks := map[event.Platform]adapters.Hook{}
	for _, p := range config.Platforms() {
		if hook, ok := p.New("", p.Config()).(adapters.Hook); ok {
			hooks[p.Name] = hook
		}
	}
	return hooks
}()

// api returns our own HTTP API.
func (d *Daemon) api() web.API {
	gate := access.Gate{
		Workspaces: func() []access.Workspace { return d.web() },
		Secrets:    d.ReplySecrets, Tickets: d.Journal.Threads, Keys: d.keys, RunTokens: d.runTokens, Guard: d.guard,
	}
	threads := threads.API{
		Gate: gate, Storage: d.storage, Inbox: timed{d.Ingest, d.metrics, d.storage}, Ingest: d.Ingest, Places: d.Journal.Threads, Messages: d.Journal.Messages, Children: d.Journal.Workstreams,
		Streams: d.streams, Now: d.now,
	}
	runs := runs.API{
		Threads: threads, Runs: d.Journal.Runs, Turns: d.Turns,
		Workstreams: d.workstreams, Children: d.Journal.Workstreams,
		Replies: runs.Replies{Gate: gate, Runs: d.Journal.Runs, Work: d.Work},
	}
	return web.API{
		Gate: gate, Storage: d.storage, Threads: threads, Runs: runs, Tools: d.tools(threads),
		Speak: speak.API{Threads: threads, Outbox: d.outbox, Reserved: reserved()},
	}
}

// reserved returns the sources and the namespaces of senders that no injected message may have.
func reserved() []string {
	names := []string{"user", "agent", "operator", "schedule", "system", "parley"}
	for _, p := range config.Platforms() {
		names = append(names, string(p.Name), p.Namespace())
	}
	return names
}

// tools returns the tools of agents and programs.
func (d *Daemon) tools(t threads.API) tools.API {
	return tools.API{
		Threads: t, Places: d.Journal.Threads, Search: d.Journal.Search, Outbox: d.outbox, Schedules: d.schedules, AgentOf: d.agentOf, ChannelName: d.channelName, Version: d.version,
		Runs: d.Journal.Runs, Rights: d.Rights, Namespace: d.namespace, Sees: d.sees, Sight: d.Sight, Artifacts: d.workstreams,
	}
}
