package threads

import (
	"context"
	"net/http"
	"time"

	"parley/adapters/web/exchange"
	"parley/adapters/web/payload"
	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/trace"
)

// recordTimeout bounds a POST's wait for the recording of its message.
const recordTimeout = 2 * time.Second

// Accepted is the result of a message that was accepted durably.
type Accepted struct {
	ID      string           // of the message
	known   bool             // it was accepted before
	Message *messages.Listed // nil if it was not recorded in time
}

// Status returns the status of the response: 200 for a message that was accepted before, else 202.
func (s Accepted) Status() int {
	if s.known {
		return http.StatusOK
	}
	return http.StatusAccepted
}

// envelope returns the envelope of a complete body for a workspace.
func (a API) envelope(workspace string, b payload.Body) event.Envelope {
	return event.Envelope{Workspace: workspace, Platform: event.Web, Transport: "api", ReceivedAt: a.Now(), Body: b.Bytes()}
}

// Send passes a complete body for a workspace to the durable accept, and waits until its message is
// recorded.
func (a API) Send(r *http.Request, workspace string, b payload.Body) (s Accepted, err error) {
	b.Metadata = trace.Into(r.Context(), b.Metadata)
	return a.Give(r, a.envelope(workspace, b))
}

// Give is Send for an envelope.
func (a API) Give(r *http.Request, envelope event.Envelope) (s Accepted, err error) {
	receipt, err := a.Inbox.Accept(r.Context(), envelope)
	if err != nil {
		return s, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), recordTimeout)
	defer cancel()
	settled, err := a.Ingest.Wait(ctx, receipt.ID)
	s = Accepted{ID: receipt.MessageUUID, known: receipt.Duplicate}
	switch {
	case err != nil || settled == nil:
	case settled.Disposition == event.Dead:
		return s, exchange.Fail(http.StatusInternalServerError, "dead", "the message could not be recorded; it is now a dead letter")
	case settled.Disposition == event.Ignored && settled.Reason == event.ReasonLimit:
		return s, ErrLimit
	case settled.Disposition == event.Ignored && settled.Reason == event.ReasonPaused:
		return s, exchange.Fail(http.StatusServiceUnavailable, "paused", "the agent is paused: ask again later")
	case settled.Disposition == event.Ignored && settled.Reason == event.ReasonAction:
		return s, exchange.Fail(http.StatusForbidden, "action", "metadata.action: no card of an agent in the thread has this button, or only the agent's approvers may press it")
	case settled.Message == nil || settled.Disposition == event.Ignored:
		return s, exchange.Fail(http.StatusForbidden, "refused", "the workspace's policy does not admit this message: "+settled.Reason)
	default:
		s.known, s.Message = s.known || settled.Disposition == event.Duplicate, settled.Message
	}
	return s, nil
}
