package bridge

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"parley/adapters"
	"parley/adapters/guard"
	"parley/adapters/web/exchange"
	"parley/adapters/web/payload"
	"parley/ingest/event"
)

const (
	// maxRequest bounds the body of a request with its files, and maxStored what is stored of it, in bytes.
	maxRequest, maxStored = 32 << 20, 1 << 20
	// requestTimeout bounds the arrival of a body.
	requestTimeout = 30 * time.Second
)

// Storage is an Inbox that stores the files of messages before the messages.
type Storage interface {
	// Keep stores the bytes of the attachments of a sender's message, and names their places in b. Its errors are those of a
	// handler of package exchange.
	Keep(ctx context.Context, w http.ResponseWriter, workspace, sender string, b *payload.Body) error
}

// Handler serves the program's requests. Each is answered after the durable accept: 202, or 200 for one that was accepted before.
func (a *Adapter) Handler(inbox adapters.Inbox, g *guard.Guard) http.Handler {
	return exchange.Handler(g, "", func(w http.ResponseWriter, r *http.Request) error {
		if !a.config.Token.Equal(guard.Bearer(r)) {
			refusal := g.Unauthorized(w, r, "wrong-token")
			w.Header().Set("WWW-Authenticate", "Bearer")
			return exchange.Fail(refusal.Status, refusal.Reason, "the request needs the token of this workspace's program: Authorization: Bearer …")
		}
		g.Admit(r)
		body, err := a.body(w, r, inbox, g)
		if err != nil {
			return err
		}
		receipt, err := inbox.Accept(r.Context(), event.Envelope{
			Workspace: a.workspace, Platform: event.Bridge, Transport: "http", ReceivedAt: time.Now(), Body: body,
		})
		if err != nil {
			return err
		}
		status := http.StatusAccepted
		if receipt.Duplicate {
			status = http.StatusOK
		}
		answer := map[string]any{}
		if receipt.Thread != "" {
			answer["message"] = map[string]string{"id": receipt.MessageUUID}
		}
		return exchange.Respond(w, status, answer)
	})
}

// HookOnly implements adapters.Hook.
func (*Adapter) HookOnly() bool { return true }

// body returns the body of a request that has no fault. The places of its files replace their bytes.
func (a *Adapter) body(w http.ResponseWriter, r *http.Request, inbox adapters.Inbox, g *guard.Guard) ([]byte, error) {
	raw, refusal := g.Body(w, r, guard.Limit{Bytes: maxRequest, Time: requestTimeout})
	if refusal != nil {
		return nil, exchange.Fail(refusal.Status, refusal.Reason, "the body must have at most 32 MiB and arrive within 30 seconds")
	}
	if err := event.CheckUTF8(raw); err != nil {
		return nil, exchange.Fail(http.StatusBadRequest, "invalid", "the body "+err.Error())
	}
	q, err := read(a.workspace, raw)
	if err == nil {
		err = q.Unsent().Err()
	}
	if err == nil && len(q.Attachments) > 0 {
		raw, err = a.keep(w, r, inbox, &q, raw)
	}
	if err == nil && len(raw) > maxStored {
		err = exchange.Fail(http.StatusRequestEntityTooLarge, "too-large", "the request must have at most 1 MiB without the bytes of its files")
	}
	return raw, err
}

// keep stores the files of a message, and returns its body with their places.
func (a *Adapter) keep(w http.ResponseWriter, r *http.Request, inbox adapters.Inbox, q *request, raw []byte) ([]byte, error) {
	storage, ok := inbox.(Storage)
	if !ok {
		return nil, adapters.ErrBusy
	}
	if err := storage.Keep(r.Context(), w, a.workspace, q.said.SenderID, &q.Body); err != nil {
		return nil, err
	}
	members, err := event.ReadObject(raw)
	for i := range members {
		if members[i].Key == "attachments" {
			members[i].Value, _ = json.Marshal(q.Attachments) // texts and numbers always encode
		}
	}
	return event.WriteObject(members), err
}
