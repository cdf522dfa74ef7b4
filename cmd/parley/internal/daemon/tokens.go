package daemon

import (
	"context"
	"net/url"
	"strings"

	"parley/adapters/web/access"
	"parley/assembly"
)

// tokens makes what admits agents to our HTTP server.
type tokens struct {
	*access.RunTokens
	daemon *Daemon
}

// Push implements turn.Tokens. Only public_url is an address that another machine surely reaches.
func (t tokens) Push(ctx context.Context, known string) (assembly.Push, error) {
	public := strings.TrimSuffix(t.daemon.Setup().Config.PublicURL, "/")
	if public == "" {
		return assembly.Push{}, nil
	}
	token, err := t.RunTokens.Push(ctx, known)
	return assembly.Push{URL: public + "/api/v1/runs/" + url.PathEscape(known) + "/push", Token: token}, err
}
