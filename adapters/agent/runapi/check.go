package runapi

import (
	"context"
	"errors"
	"net/http"

	"parley/adapters"
	"parley/adapters/agent"
	"parley/adapters/agent/remote"
)

var _ agent.Checker = (*Agent)(nil)

// Check implements agent.Checker. It asks for a run that does not exist: a server that takes the token
// answers 404.
func (a *Agent) Check(ctx context.Context) ([]adapters.Finding, error) {
	request, err := a.request(ctx, "runs/00000000-0000-0000-0000-000000000000/stream", "", nil)
	if err != nil {
		return nil, err
	}
	err = a.client.Send(request)
	if fault, ok := errors.AsType[*remote.Error](err); ok && fault.Status == http.StatusNotFound {
		return nil, nil
	}
	return remote.Keys{Address: "base_url", Secret: "token"}.Judge(err)
}
