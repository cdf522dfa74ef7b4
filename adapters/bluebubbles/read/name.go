package read

import (
	"context"
	"net/http"
	"strings"

	"parley/adapters"
	"parley/adapters/bluebubbles/call"
	"parley/adapters/bluebubbles/payload"
	"parley/ingest/event"
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

// LookupPlace returns the name that people have given to a group. Any other chat has none.
func (r *Reader) LookupPlace(ctx context.Context, channel string) (event.Place, error) {
	var chat struct {
		DisplayName string `json:"displayName"`
	}
	if guid := r.client.Chats.GUID(channel); strings.Contains(guid, ";+;") {
		if err := r.client.Call(ctx, http.MethodGet, "chat/"+call.Escape(guid), nil, nil, &chat); err != nil {
			return event.Place{}, err
		}
	}
	if chat.DisplayName == "" {
		return event.Place{}, adapters.ErrNoName
	}
	return event.Place{Channel: event.Text(chat.DisplayName)}, nil
}
