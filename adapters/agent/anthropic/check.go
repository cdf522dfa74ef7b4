package anthropic

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"

	"parley/adapters"
	"parley/adapters/agent"
	"parley/adapters/agent/remote"
)

var _ agent.Checker = (*Agent)(nil)

// Check implements agent.Checker. It asks for the model, and for one token of a server that knows no
// resource of models, such as a gateway.
// https://docs.anthropic.com/en/api/models
func (a *Agent) Check(ctx context.Context) ([]adapters.Finding, error) {
	keys := remote.Keys{Address: "base_url", Secret: "api_key", Model: "model"}
	err := a.try(ctx, "/v1/models/"+url.PathEscape(a.config.Model), nil)
	if fault, ok := errors.AsType[*remote.Error](err); ok && (fault.Status == http.StatusNotFound || fault.Status == http.StatusMethodNotAllowed) {
		body, _ := json.Marshal(map[string]any{ // texts and numbers always encode
			"model": a.config.Model, "max_tokens": 1, "messages": []any{map[string]string{"role": "user", "content": "Hi"}},
		})
		err = a.try(ctx, "/v1/messages", bytes.NewReader(body))
	}
	return keys.Judge(err)
}

// try makes a request and returns the error of its answer.
func (a *Agent) try(ctx context.Context, path string, body io.Reader) error {
	request, err := a.client.Request(ctx, a.address(path), "", body)
	if err != nil {
		return err
	}
	a.authorize(request)
	return a.client.Send(request)
}
