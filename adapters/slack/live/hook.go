package live

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"time"

	"parley/adapters"
	"parley/adapters/guard"
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
func (rc *Receiver) Handler(inbox adapters.Inbox, guard *guard.Guard) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rc.serve(w, r, notingInbox{inbox, rc}, guard)
	})
}

// serve authenticates a call, hands its payload to the inbox, and acknowledges it. It refuses a
// call whose headers are wrong before it reads the body.
func (rc *Receiver) serve(w http.ResponseWriter, r *http.Request, inbox adapters.Inbox, g *guard.Guard) {
	if reason := rc.verifyHeader(r.Header); reason != "" {
		g.Refuse(w, g.Unauthorized(w, r, reason))
		return
	}
	body, refusal := g.Unverified(w, r, guard.Limit{Bytes: maxBody, Time: bodyTimeout}, func(body []byte) string {
		return rc.verifyBody(r.Header, body)
	})
	if refusal != nil {
		g.Refuse(w, refusal)
		return
	}
	body = decodeForm(r.Header, body)
	if challenge, asked := challenge(body); asked {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		_, _ = io.WriteString(w, challenge)
		return
	}
	_, err := inbox.Accept(r.Context(), event.Envelope{
		Workspace: rc.workspace, Platform: event.Slack, Transport: "http", ReceivedAt: rc.client.Now(), Body: body,
		Retried: isRetry(r.Header),
	})
	if err != nil {
		w.Header().Set("Retry-After", retryLater)
		g.Refuse(w, &guard.Refusal{Status: http.StatusServiceUnavailable, Reason: "not-accepted"})
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
