package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"parley/adapters"
	"parley/adapters/agent"
	"parley/adapters/agent/remote"
)

var _ agent.Checker = (*Agent)(nil)

// keys are the settings that a refusal is about.
var keys = remote.Keys{Address: "base_url", Secret: "api_key", Model: "model"}

// Check implements agent.Checker. The list of models tells whether the model is known. It says nothing
// about the key if the server shows it to everybody; then, and if the list lacks the model, Check asks
// for one token.
func (a *Agent) Check(ctx context.Context) ([]adapters.Finding, error) {
	models, err := a.models(ctx, a.authorize)
	fault, _ := errors.AsType[*remote.Error](err)
	switch {
	case fault != nil && (fault.Status == http.StatusUnauthorized || fault.Status == http.StatusForbidden || fault.Status == 0):
		return keys.Judge(err)
	case slices.Contains(models, a.config.Model) || slices.Contains(models, a.config.Model+":latest"): // Ollama adds it
		if !a.isPublic(ctx) {
			return nil, nil
		}
	}
	return keys.Judge(a.ping(ctx))
}

// models returns the ids of the server's models.
// https://platform.openai.com/docs/api-reference/models/list
func (a *Agent) models(ctx context.Context, prepare func(*http.Request)) (ids []string, err error) {
	request, err := a.client.Request(ctx, a.address("/models"), "", nil)
	if err != nil {
		return nil, err
	}
	prepare(request)
	response, err := a.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Close()
	raw, err := a.client.JSON(response)
	if err != nil {
		return nil, err
	}
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, a.client.Invalid("the list of models is not readable", err)
	}
	for _, model := range list.Data {
		ids = append(ids, model.ID)
	}
	return ids, nil
}

// isPublic reports whether a provider shows its list without the key. A server nearby needs no key.
func (a *Agent) isPublic(ctx context.Context) bool {
	u, err := url.Parse(a.config.BaseURL)
	if err != nil || a.config.APIKey.IsZero() || adapters.IsNear(u.Hostname()) {
		return false
	}
	_, err = a.models(ctx, func(*http.Request) {})
	return err == nil
}

// ping asks for one token. A server that refuses the bound of tokens has found the model.
func (a *Agent) ping(ctx context.Context) error {
	body, _ := json.Marshal(map[string]any{ // texts and numbers always encode
		"model": a.config.Model, "max_tokens": 1, "messages": []any{map[string]string{"role": "user", "content": "Hi"}},
	})
	request, err := a.client.Request(ctx, a.address("/chat/completions"), "", bytes.NewReader(body))
	if err != nil {
		return err
	}
	a.authorize(request)
	err = a.client.Send(request)
	fault, ok := errors.AsType[*remote.Error](err)
	if ok && fault.Status == http.StatusBadRequest && (strings.Contains(fault.Error(), "max_tokens") || !strings.Contains(fault.Error(), a.config.Model)) {
		return nil
	}
	return err
}

// address returns the address of a resource of the API.
func (a *Agent) address(path string) string { return strings.TrimRight(a.config.BaseURL, "/") + path }

// authorize adds the key, if there is one.
func (a *Agent) authorize(r *http.Request) {
	if key := strings.TrimSpace(a.config.APIKey.Reveal()); key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
}
