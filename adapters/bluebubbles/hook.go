package bluebubbles

import (
	"context"
	"net/http"
	"path"
	"time"

	"parley/adapters"
	"parley/adapters/bluebubbles/payload"
	"parley/adapters/guard"
)

const (
	// maxBody bounds one webhook, in bytes. The poller reads a message whose webhook is
	// larger.
	maxBody = 1 << 20
	// bodyTimeout bounds the time in which a body must arrive.
	bodyTimeout = 5 * time.Second
)

// Handler serves the webhooks. The last segment of the path is our secret, because BlueBubbles
// signs nothing. A webhook is only a hint: BlueBubbles sends it once, in no order, and often
// again. If rows before a recent one were not accepted, they are read first, so that a chat's
// turns see its messages in their order.
func (a *Adapter) Handler(inbox adapters.Inbox, g *guard.Guard) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !a.config.WebhookSecret.Equal(path.Base(r.URL.Path)) {
			g.Refuse(w, g.Unauthorized(w, r, "wrong-secret"))
			return
		}
		body, refusal := g.Body(w, r, guard.Limit{Bytes: maxBody, Time: bodyTimeout})
		if refusal == nil && a.receive(r.Context(), inbox, body) != nil {
			refusal = &guard.Refusal{Status: http.StatusServiceUnavailable, Reason: "not-accepted"}
		}
		if refusal != nil {
			g.Refuse(w, refusal)
		}
	})
}

// HookOnly returns false, because the poller reads the messages that the hook misses.
func (a *Adapter) HookOnly() bool { return false }

// receive accepts a webhook. It accepts it also if the rows before its own cannot be read now,
// because the poller reads them later.
func (a *Adapter) receive(ctx context.Context, inbox adapters.Inbox, body []byte) error {
	envelope := a.envelope("webhook", body)
	p := payload.Parse(envelope)
	if !p.IsRow() {
		return a.accept(ctx, inbox, envelope)
	}
	if a.isRecent(p) && a.reader.misses(p.Row) {
		_ = a.catchUp(ctx, inbox, p.Row)
	}
	envelope.Queued = func() { a.reader.follows(p.Row) }
	err := a.accept(ctx, inbox, envelope)
	if err != nil {
		a.reader.lost(p.Row)
	}
	return err
}
