package agui

import (
	"context"
	"net/http"

	"parley/adapters"
	"parley/adapters/agent"
	"parley/adapters/agent/remote"
)

var _ agent.Checker = (*Agent)(nil)

// Check implements agent.Checker. The protocol has only runs, so Check learns whether the server answers
// and takes the headers.
func (a *Agent) Check(ctx context.Context) ([]adapters.Finding, error) {
	return a.client.Reach(ctx, a.config.URL, remote.Keys{Address: "url", Secret: "headers"}, a.prepare)
}

// prepare adds the configured headers.
func (a *Agent) prepare(r *http.Request) {
	for _, h := range a.config.Headers {
		r.Header.Set(h.Name, h.Value.Reveal())
	}
}
