package remote

import (
	"context"
	"errors"
	"net"
	"net/http"

	"parley/adapters"
)

// Keys are the keys of an agent's settings that a refusal of its server is about; empty for none.
type Keys struct{ Address, Secret, Model string }

// Judge returns the finding that an error of a request is about the settings: the server cannot be
// reached, or refuses the secret, the model or the address. Any other error tells nothing about them, and is returned.
func (k Keys) Judge(err error) ([]adapters.Finding, error) {
	fault, ok := errors.AsType[*Error](err)
	if !ok {
		return nil, err
	}
	dial, isNet := errors.AsType[*net.OpError](fault.cause)
	key := ""
	switch {
	case fault.Status == http.StatusUnauthorized || fault.Status == http.StatusForbidden:
		key = k.Secret
	case fault.Status == http.StatusNotFound || fault.Status == http.StatusBadRequest:
		key = k.Model
	case fault.Status >= 300 && fault.Status < 400, isNet && dial.Op == "dial" && !dial.Timeout():
		key = k.Address
	}
	if key == "" {
		return nil, err
	}
	return []adapters.Finding{{Key: key, Words: "the agent can't answer: " + fault.text, Fault: true}}, nil
}

// Reach asks whether a server answers at an address, and whether it takes the headers that prepare adds. It
// begins no run.
func (c *Client) Reach(ctx context.Context, address string, keys Keys, prepare func(*http.Request)) ([]adapters.Finding, error) {
	request, err := c.Request(ctx, address, "", nil)
	if err != nil {
		return nil, err
	}
	prepare(request)
	request.Method = http.MethodHead
	if err = c.Send(request); err == nil {
		return nil, nil
	}
	if findings, _ := keys.Judge(err); findings != nil {
		return findings, nil
	}
	if fault, ok := errors.AsType[*Error](err); ok && fault.Status > 0 && (fault.Status < 500 || fault.Status == http.StatusNotImplemented) {
		return nil, nil // such as 405, or 501 of Python's http.server: the address takes only runs
	}
	return nil, err
}
