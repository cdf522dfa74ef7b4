package read

import (
	"context"
	"net/http"
	"strings"

	"parley/adapters"
	"parley/adapters/bluebubbles/payload"
)

// LookupUser returns the name of an address in the server's contacts. The server's query finds only
// telephone numbers, so an e-mail address is looked up among all contacts.
func (r *Reader) LookupUser(ctx context.Context, address string) (adapters.User, error) {
	var found []payload.Contact
	method, path, body := http.MethodPost, "contact/query", any(map[string]any{"addresses": []string{address}})
	if strings.ContainsRune(address, '@') {
		method, path, body = http.MethodGet, "contact", nil
	}
	if err := r.client.Call(ctx, method, path, nil, body, &found); err != nil {
		return adapters.User{}, err
	}
	for _, c := range found {
		if name := c.Name(); c.Has(address) && name != "" {
			return adapters.User{DisplayName: name}, nil
		}
	}
	return adapters.User{}, adapters.ErrNoName
}
