package bluebubbles

import (
	"errors"
	"io"
	"net/http"
	"path"

	"parley/adapters"
)

// maxBody bounds one webhook, in bytes. The poller reads a message whose webhook is larger.
const maxBody = 1 << 20

// Handler serves the webhooks. The last segment of the path is our secret, because BlueBubbles
// signs nothing. A webhook is only a hint: BlueBubbles sends it once, in no order, and often
// again. If rows before its own were not accepted, they are read first, so that a chat's turns
// see its messages in their order.
func (a *Adapter) Handler(inbox adapters.Inbox, rejected func(reason string)) http.Handler {
	reject := func(w http.ResponseWriter, status int, reason string) {
		rejected(reason)
		http.Error(w, http.StatusText(status), status)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !a.config.WebhookSecret.Equal(path.Base(r.URL.Path)) {
			reject(w, http.StatusUnauthorized, "wrong-secret")
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
			reject(w, http.StatusRequestEntityTooLarge, "too-large")
			return
		}
		if err != nil {
			reject(w, http.StatusBadRequest, "broken-body")
			return
		}
		if a.receive(r, inbox, body) != nil {
			reject(w, http.StatusServiceUnavailable, "no-custody")
		}
	})
}

// HookOnly returns false: the poller reads what the hook misses.
func (a *Adapter) HookOnly() bool { return false }

// receive accepts a webhook. It accepts it also if the rows before its own cannot be read now,
// because the poller reads them later.
func (a *Adapter) receive(r *http.Request, inbox adapters.Inbox, body []byte) error {
	ctx := r.Context()
	p, _ := read(body)
	isRow := p.webhook == newMessage && p.row > 0 && (p.chat != nil || p.ignored != "")
	if isRow && a.reader.misses(p.row) {
		_ = a.catchUp(ctx, inbox, p.row)
	}
	_, err := a.accept(ctx, inbox, body, "webhook", p)
	if err == nil && isRow {
		a.reader.follows(p.row)
	}
	return err
}
