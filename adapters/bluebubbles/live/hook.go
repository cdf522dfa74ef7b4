package live

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
func (rc *Receiver) Handler(inbox adapters.Inbox, g *guard.Guard) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !rc.settings.WebhookSecret.Equal(path.Base(r.URL.Path)) {
			g.Refuse(w, g.Unauthorized(w, r, "wrong-secret"))
			return
		}
		body, refusal := g.Body(w, r, guard.Limit{Bytes: maxBody, Time: bodyTimeout})
		if refusal == nil && rc.receive(r.Context(), inbox, body) != nil {
			refusal = &guard.Refusal{Status: http.StatusServiceUnavailable, Reason: "not-accepted"}
		}
		if refusal != nil {
			g.Refuse(w, refusal)
		}
	})
}

// HookOnly returns false, because the poller reads the messages that the hook misses.
func (rc *Receiver) HookOnly() bool { return false }

// receive accepts a webhook. It accepts it also if the rows before its own cannot be read now,
// because the poller reads them later.
func (rc *Receiver) receive(ctx context.Context, inbox adapters.Inbox, body []byte) error {
	envelope := rc.client.Envelope("webhook", body)
	p := payload.Parse(envelope)
	if !p.IsRow() {
		return rc.accept(ctx, inbox, envelope)
	}
	if rc.isRecent(p) && rc.progress.misses(p.Row) {
		_ = rc.catchUp(ctx, inbox, p.Row)
	}
	envelope.Queued = func() { rc.progress.follows(p.Row) }
	err := rc.accept(ctx, inbox, envelope)
	if err != nil {
		rc.progress.lost(p.Row)
	}
	return err
}
