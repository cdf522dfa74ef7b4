package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"parley/adapters"
	"parley/adapters/web"
	"parley/ingest"
	"parley/ingest/event"
)

const (
	// headerTimeout and headerBytes bound the headers of a caller that is not
	// authenticated yet.
	headerTimeout = 5 * time.Second
	headerBytes   = 32 << 10
	// requestTimeout bounds a whole request with its body.
	requestTimeout = 30 * time.Second
	idleTimeout    = 2 * time.Minute
	// probeTimeout bounds the wait of a readiness check for the store.
	probeTimeout = time.Second
)

// newServer returns the HTTP server with all its routes.
func (d *Daemon) newServer() *http.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /hooks/{platform}/{workspace}", d.hook)
	mux.HandleFunc("POST /api/v1/workspaces/{workspace}/messages", d.api(web.API.PostMessage))
	mux.HandleFunc("GET /api/v1/workspaces/{workspace}/threads", d.api(web.API.ListThreads))
	mux.HandleFunc("GET /api/v1/workspaces/{workspace}/threads/{thread_id}/messages", d.api(web.API.ListMessages))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	mux.HandleFunc("GET /readyz", d.ready)
	mux.Handle("GET /metrics", promhttp.HandlerFor(d.metrics.registry, promhttp.HandlerOpts{}))
	return &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       requestTimeout,
		WriteTimeout:      requestTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    headerBytes,
	}
}

// hook passes a request to its workspace's adapter.
func (d *Daemon) hook(w http.ResponseWriter, r *http.Request) {
	a := d.current.Load().accounts[r.PathValue("workspace")]
	if a != nil && string(a.Platform) == r.PathValue("platform") {
		if hook, ok := a.adapter.(adapters.Hook); ok {
			hook.Handler(timed{d.ingest, d.metrics}, d.metrics.reject).ServeHTTP(w, r)
			return
		}
	}
	d.metrics.reject("no-such-hook")
	http.NotFound(w, r)
}

// timed measures the time of each durable accept.
type timed struct {
	*ingest.Ingest
	metrics *metrics
}

// Accept implements adapters.Inbox.
func (t timed) Accept(ctx context.Context, envelope event.Envelope) (adapters.Receipt, error) {
	begun := time.Now()
	receipt, err := t.Ingest.Accept(ctx, envelope)
	if err == nil {
		t.metrics.acknowledged(envelope.Workspace, begun)
	}
	return receipt, err
}

// api passes a request to the API of its workspace. The API treats an unknown workspace like
// a known one without tokens.
func (d *Daemon) api(serve func(web.API, http.ResponseWriter, *http.Request)) http.HandlerFunc {
	unknown := web.New("", web.DefaultConfig())
	return func(w http.ResponseWriter, r *http.Request) {
		current, id := d.current.Load(), r.PathValue("workspace")
		adapter, asks := unknown, func(string) bool { return false }
		if a := current.accounts[id]; a != nil {
			asks = hasAgent(&a.Workspace)
			if own, ok := a.adapter.(*web.Adapter); ok {
				adapter = own
			}
		}
		serve(web.API{
			Adapter: adapter, Workspace: id, Others: current.web, Asks: asks,
			Inbox: timed{d.ingest, d.metrics}, Recorded: d.ingest, Store: d.journal, Files: d,
			Rejected: d.metrics.reject, Now: d.now,
		}, w, r)
	}
}

// ready answers whether the store takes messages, and the state of each workspace.
func (d *Daemon) ready(w http.ResponseWriter, r *http.Request) {
	body := struct {
		Ready      bool                       `json:"ready"`
		Store      string                     `json:"store"`
		Workspaces map[string]adapters.Status `json:"workspaces"`
	}{true, "ok", map[string]adapters.Status{}}
	ctx, cancel := context.WithTimeout(r.Context(), probeTimeout)
	defer cancel()
	status := http.StatusOK
	err := d.journal.Probe(ctx)
	if err == nil && d.ingest.Refusing() {
		err = errors.New("the store refused an envelope a moment ago")
	}
	if err != nil {
		body.Ready, body.Store, status = false, "can't take messages now", http.StatusServiceUnavailable
		d.log.Warn("store takes no messages", "err", err)
	}
	for id, a := range d.current.Load().accounts {
		if s, ok := a.links.status(); ok {
			body.Workspaces[id] = s
		}
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // an error means that the caller has hung up
}
