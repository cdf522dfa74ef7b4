package daemon

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"parley/adapters"
	"parley/adapters/guard"
)

const (
	// probeTimeout bounds the wait of a readiness check for the store.
	probeTimeout = time.Second
	// probeEvery is the time for which the answer of the store is valid.
	probeEvery = time.Second
)

// probe is the last answer of the store to a readiness check.
type probe struct {
	mu  sync.Mutex
	at  time.Time
	err error
}

// operators serves a route for operators and their programs. The Host must be ours if the
// listener is loopback, because a page of another site could read the answer otherwise. The
// handler learns whether the caller may see everything: it has the token of metrics, or there is
// none. No address is trusted, because a proxy's calls come from this machine too. A wrong
// token is refused.
func (d *Daemon) operators(serve func(w http.ResponseWriter, r *http.Request, trusted bool)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c := d.Setup().Config
		if isLoopback(d.listener.Addr()) && !guard.IsLocalHost(r) && !isHostOf(c.PublicURL, r) {
			d.guard.Refuse(w, &guard.Refusal{Status: http.StatusForbidden, Reason: "foreign-host"})
			return
		}
		given := guard.Bearer(r)
		trusted := c.Metrics.Token.IsZero() || c.Metrics.Token.Equal(given)
		if !trusted && given != "" {
			d.refuseOperator(w, r)
			return
		}
		serve(w, r, trusted)
	}
}

func (d *Daemon) refuseOperator(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("WWW-Authenticate", "Bearer")
	d.guard.Refuse(w, d.guard.Unauthorized(w, r, "no-metrics-token"))
}

// isLoopback reports whether only this machine reaches a listener's address.
func isLoopback(address net.Addr) bool {
	tcp, ok := address.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// isHostOf reports whether an address that is not empty has the Host of a request.
func isHostOf(address string, r *http.Request) bool {
	u, err := url.Parse(address)
	return err == nil && u.Host != "" && u.Host == r.Host
}

// figures answers with all metrics.
func (d *Daemon) figures(w http.ResponseWriter, r *http.Request, trusted bool) {
	if !trusted {
		d.refuseOperator(w, r)
		return
	}
	promhttp.HandlerFor(d.metrics.registry, promhttp.HandlerOpts{}).ServeHTTP(w, r)
}

// ready answers whether the store takes messages, and only to a trusted caller the state of each
// workspace.
func (d *Daemon) ready(w http.ResponseWriter, r *http.Request, trusted bool) {
	body := struct {
		Ready bool   `json:"ready"`
		Store string `json:"store"`
		// Attachments says whether files can be stored. Messages go on without.
		Attachments string                     `json:"attachments"`
		Workspaces  map[string]adapters.Status `json:"workspaces,omitzero"`
	}{Ready: true, Store: "ok", Attachments: "ok"}
	status := http.StatusOK
	if err := d.takesMessages(r.Context()); err != nil {
		body.Ready, body.Store, status = false, "can't take messages now", http.StatusServiceUnavailable
	}
	if d.files.Trouble() != nil {
		body.Attachments = "can't be stored now"
	}
	if trusted {
		body.Workspaces = map[string]adapters.Status{}
		for id, a := range d.accounts.all() {
			if s, ok := a.links.status(); ok {
				body.Workspaces[id] = s
			}
		}
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // an error means that the caller has hung up
}

// takesMessages asks the store, at most once a second, whether it takes messages.
func (d *Daemon) takesMessages(ctx context.Context) error {
	p := &d.probe
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.at) >= probeEvery {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeTimeout) // others use the answer, too
		defer cancel()
		before := p.err
		if p.err = d.Journal.Probe(ctx); p.err != nil {
			d.Ingest.StoreFails(p.err, false)
		} else if before != nil {
			d.Ingest.StoreWorks()
		}
		p.at = time.Now()
	}
	if p.err != nil {
		return p.err
	}
	return d.Ingest.Refusing()
}
