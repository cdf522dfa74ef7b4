package slack

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"

	"parley/adapters"
	"parley/ingest/event"
)

const (
	// maxBody bounds one call of the hook, in bytes.
	maxBody = 1 << 20
	// bodyTimeout bounds the time in which a body must arrive. Slack itself ends a call
	// after 3 s.
	// https://docs.slack.dev/apis/events-api/#responding
	bodyTimeout = 5 * time.Second
	// retryLater is the Retry-After header, in seconds, for a call that the journal can't
	// accept. Slack retries on its own schedule.
	retryLater = "1"
)

// Handler serves the events, interactions and commands that Slack posts. It
// acknowledges an event only after the inbox has durably accepted it. It marks a retry
// as such and otherwise treats it like a first attempt, because the journal decides
// whether a payload is new.
func (a *Adapter) Handler(inbox adapters.Inbox, rejected func(reason string)) http.Handler {
	return &hook{adapter: a, inbox: a.greetingInbox(inbox), rejected: rejected}
}

// HookOnly reports whether the mode is http.
func (a *Adapter) HookOnly() bool { return a.config.Mode == ModeHTTP }

type hook struct {
	adapter  *Adapter
	inbox    adapters.Inbox
	rejected func(reason string)
}

// ServeHTTP bounds the body, authenticates the call, hands the payload to the inbox,
// and acknowledges it, in this order.
func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		h.reject(w, http.StatusMethodNotAllowed, "wrong-method")
		return
	}
	body, status, reason := h.read(w, r)
	if reason != "" {
		h.reject(w, status, reason)
		return
	}
	if reason := h.adapter.verify(r.Header, body); reason != "" {
		h.reject(w, http.StatusUnauthorized, reason)
		return
	}
	body = decodeForm(r.Header, body)
	if challenge, asked := challenge(body); asked {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		_, _ = io.WriteString(w, challenge)
		return
	}
	_, err := h.inbox.Accept(r.Context(), event.Envelope{
		Workspace: h.adapter.Workspace, Platform: event.Slack, Transport: "http", ReceivedAt: h.adapter.now(), Body: body,
		Retried: isRetry(r.Header),
	})
	if err != nil {
		w.Header().Set("Retry-After", retryLater)
		h.reject(w, http.StatusServiceUnavailable, "no-custody")
		return
	}
	w.WriteHeader(http.StatusOK)
}

// isRetry reports whether Slack has sent the payload before.
// https://docs.slack.dev/apis/events-api/#error-handling
func isRetry(header http.Header) bool {
	n, err := strconv.Atoi(header.Get("X-Slack-Retry-Num"))
	return err == nil && n >= 1
}

// reject answers with the status's standard text. Only the operator gets the reason.
func (h *hook) reject(w http.ResponseWriter, status int, reason string) {
	h.rejected(reason)
	http.Error(w, http.StatusText(status), status)
}

// read reads the body within its bounds, or returns the status and reason of the
// refusal.
func (h *hook) read(w http.ResponseWriter, r *http.Request) (body []byte, status int, reason string) {
	const tooLarge = "too-large"
	if r.ContentLength > maxBody {
		w.Header().Set("Connection", "close")
		return nil, http.StatusRequestEntityTooLarge, tooLarge
	}
	control := http.NewResponseController(w)
	if err := control.SetReadDeadline(time.Now().Add(h.adapter.bodyTimeout)); err != nil {
		return nil, http.StatusInternalServerError, "no-deadline"
	}
	var b bytes.Buffer
	_, err := b.ReadFrom(http.MaxBytesReader(w, r.Body, maxBody))
	var tooLong *http.MaxBytesError
	switch {
	case err == nil: // the server now removes the deadline by itself
		return b.Bytes(), 0, ""
	case errors.As(err, &tooLong):
		return nil, http.StatusRequestEntityTooLarge, tooLarge
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.Header().Set("Connection", "close")
		return nil, http.StatusRequestTimeout, "slow-body"
	default:
		return nil, http.StatusBadRequest, "broken-body"
	}
}

// challenge returns the answer to Slack's check that this address belongs to the app.
// It returns false if the body is not such a check.
// https://docs.slack.dev/reference/events/url_verification
func challenge(body []byte) (string, bool) {
	const asking = "url_verification"
	if !bytes.Contains(body, []byte(asking)) { // true for nearly all bodies
		return "", false
	}
	var question struct {
		Type      string `json:"type"`
		Challenge string `json:"challenge"`
	}
	if err := json.Unmarshal(body, &question); err != nil || question.Type != asking {
		return "", false
	}
	return question.Challenge, true
}
