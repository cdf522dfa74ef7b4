package webhook

import (
	"context"
	"net/http"

	"parley/adapters"
	"parley/adapters/agent"
	"parley/adapters/agent/remote"
)

var _ agent.Checker = (*Agent)(nil)

// Check implements agent.Checker. Only a run is signed, so Check learns whether the server answers.
func (a *Agent) Check(ctx context.Context) ([]adapters.Finding, error) {
	return a.client.Reach(ctx, a.config.URL, remote.Keys{Address: "url"}, func(*http.Request) {})
}
