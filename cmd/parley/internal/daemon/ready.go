package daemon

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"sync"
	"time"

	"parley/adapters"
	"parley/adapters/guard"
	"parley/cmd/parley/internal/boot"
	"parley/ingest"
	"parley/ingest/journal"
)

const (
	// probeTimeout bounds the wait of a readiness check for the store.
	probeTimeout = time.Second
	// probeEvery is the time for which the answer of the store is valid.
	probeEvery = time.Second
)

// probe asks the store whether it takes messages, and keeps the last answer.
type probe struct {
	journal *journal.Journal
	ingest  *ingest.Ingest

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
		if boot.IsLoopback(d.listener.Addr()) && !guard.IsLocalHost(r) && !isHostOf(c.PublicURL, r) {
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
	d.metrics.ServeHTTP(w, r)
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
	if err := d.probe.TakesMessages(r.Context()); err != nil {
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

// TakesMessages asks the store, at most once a second, whether it takes messages.
func (p *probe) TakesMessages(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.at) >= probeEvery {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeTimeout) // others use the answer, too
		defer cancel()
		before := p.err
		if p.err = p.journal.Probe(ctx); p.err != nil {
			p.ingest.StoreFails(p.err, false)
		} else if before != nil {
			p.ingest.StoreWorks()
		}
		p.at = time.Now()
	}
	if p.err != nil {
		return p.err
	}
	return p.ingest.Refusing()
}
