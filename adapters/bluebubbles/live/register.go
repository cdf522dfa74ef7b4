package live

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"parley/adapters/bluebubbles/call"
	"parley/adapters/bluebubbles/payload"
)

// events are the types of webhooks that the server sends us.
var events = []string{payload.NewMessage, payload.UpdatedMessage, payload.MessageSendError}

// webhook is a webhook that is registered at the server.
type webhook struct {
	ID     int       `json:"id"`
	URL    string    `json:"url"`
	Events eventList `json:"events"`
}

// eventList is a list of event types. Some versions of the server send it as a text with JSON.
type eventList []string

// UnmarshalJSON implements json.Unmarshaler.
func (e *eventList) UnmarshalJSON(raw []byte) error {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		raw = []byte(text)
	}
	return json.Unmarshal(raw, (*[]string)(e))
}

func (rc *Receiver) webhooks(ctx context.Context) (list []webhook, err error) {
	ctx, cancel := context.WithTimeout(ctx, rc.client.Timeout)
	defer cancel()
	err = rc.client.Call(ctx, http.MethodGet, "webhook", nil, nil, &list)
	return list, err
}

// IsRegistered reports whether the webhook of a hook is registered at the server.
func (rc *Receiver) IsRegistered(ctx context.Context, hook string) (bool, error) {
	list, err := rc.webhooks(ctx)
	_, missing := rc.stale(list, hook)
	return !missing, err
}

// stale returns those of our webhooks that are to be deleted, and whether the right one is
// missing. A webhook is ours if its URL begins with the hook's URL.
func (rc *Receiver) stale(list []webhook, hook string) (ours []webhook, missing bool) {
	missing = true
	for _, w := range list {
		switch {
		case !strings.HasPrefix(w.URL, hook+"/"):
		case w.URL == hook+"/"+rc.settings.WebhookSecret.Reveal() && sameEvents(w.Events):
			missing = false
		default:
			ours = append(ours, w)
		}
	}
	return ours, missing
}

// sameEvents reports whether a webhook gets our events and no others.
func sameEvents(list []string) bool {
	return len(list) == len(events) && !slices.ContainsFunc(events, func(e string) bool { return !slices.Contains(list, e) })
}

// register makes the server's registration of our hook right. The server does not change the
// events of a registered URL, so register deletes a wrong one first.
func (rc *Receiver) register(ctx context.Context, hook string) error {
	if hook == "" {
		return nil
	}
	list, err := rc.webhooks(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, rc.client.Timeout)
	defer cancel()
	ours, missing := rc.stale(list, hook)
	for _, w := range ours {
		if err := rc.client.Call(ctx, http.MethodDelete, "webhook/"+strconv.Itoa(w.ID), nil, nil, nil); err != nil && !call.IsMissing(err) {
			return err
		}
	}
	if !missing {
		return nil
	}
	return rc.client.Call(ctx, http.MethodPost, "webhook", nil, map[string]any{"url": hook + "/" + rc.settings.WebhookSecret.Reveal(), "events": events}, nil)
}
