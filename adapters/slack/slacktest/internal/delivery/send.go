package delivery

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"parley/adapters/slack/slacktest/internal/life"
	"parley/adapters/slack/slacktest/internal/wire"
)

// Hook is the address to which the Events API delivers.
type Hook struct {
	URL    string
	Secret string // the app's signing secret
	// Client makes the calls; http.DefaultClient if nil.
	Client *http.Client
}

// SetHook makes the server deliver to a hook from now on, as Slack does without Socket Mode.
// A hook without a URL ends that.
func (h *Hub) SetHook(hook Hook) {
	if hook.URL == "" {
		h.hook.Store(nil)
		return
	}
	if hook.Client == nil {
		hook.Client = http.DefaultClient
	}
	h.hook.Store(&hook)
}

// overSocket sends the envelope over a socket, if possible another one than last. It returns
// nil if no socket accepted it.
func (h *Hub) overSocket(d *delivery, attempt int, last *socket) *socket {
	reason := ""
	if attempt > 0 {
		reason = "timeout"
	}
	frame := make([]byte, 0, len(d.payload)+256)
	frame = append(frame, `{"envelope_id":"`+d.id+`","payload":`...)
	frame = append(frame, d.payload...)
	frame = append(frame, `,"type":"`+d.kind+`","accepts_response_payload":`+strconv.FormatBool(d.kind != EventsAPI)...)
	if d.kind == EventsAPI {
		frame = append(frame, `,"retry_attempt":`+strconv.Itoa(attempt)+`,"retry_reason":"`+reason+`"`...)
	}
	frame = append(frame, '}')
	h.expect(d)
	return h.offer(frame, last)
}

// expect registers a delivery for the acknowledgement of its envelope.
func (h *Hub) expect(d *delivery) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.expected[d.id] = d
}

// followUp waits for the acknowledgement of an envelope, and sends the envelope again if none
// comes. took is the socket that accepted it, or nil.
func (h *Hub) followUp(d *delivery, took *socket) Result {
	result := Result{State: Unacked}
	if took == nil {
		if took = h.queue(d); took == nil {
			return Result{State: Missed}
		}
	}
	repeat := h.repetitions(d)
	for attempt := 0; ; attempt++ {
		result.Attempts++
		wait := h.options.AckWithin
		if attempt < len(repeat) {
			wait += repeat[attempt]
		}
		select {
		case ack := <-d.acked:
			result.State, result.Answer = Acked, ack.Payload
			return result
		case <-h.life.Stopped:
			return Result{}
		case <-time.After(wait):
		}
		if attempt >= len(repeat) {
			return result
		}
		took = h.overSocket(d, attempt+1, took)
	}
}

// queue waits for a socket up to the options' limit.
func (h *Hub) queue(d *delivery) *socket {
	if h.options.QueueFor <= 0 {
		return nil
	}
	ctx, cancel := h.life.Within(h.options.QueueFor)
	defer cancel()
	greeted := func() bool {
		for _, c := range h.sockets {
			if c.greeted {
				return true
			}
		}
		return false
	}
	for {
		if h.await(ctx, greeted) != nil {
			return nil
		}
		if took := h.overSocket(d, 0, nil); took != nil {
			return took
		}
	}
}

// overHook posts the envelope until the app accepts it.
// https://docs.slack.dev/apis/events-api/#retries
func (h *Hub) overHook(d *delivery, hook Hook) Result {
	result := Result{State: Unacked}
	repeat := h.repetitions(d)
	reason := ""
	for attempt := 0; ; attempt++ {
		result.Attempts++
		var final bool
		result.Answer, reason, final = h.call(d, hook, attempt, reason)
		if reason == "" {
			result.State = Acked
			return result
		}
		if final || attempt >= len(repeat) {
			return result
		}
		if !h.life.Pass(life.After(repeat[attempt]), nil) {
			return Result{}
		}
	}
}

// call posts the envelope once. It returns the app's answer, or the reason why the delivery
// failed and whether the app refuses repetitions.
func (h *Hub) call(d *delivery, hook Hook, attempt int, before string) (answer []byte, reason string, final bool) {
	ctx, cancel := h.life.Within(h.options.AckWithin)
	defer cancel()
	body, kind := d.payload, "application/json"
	if d.kind != EventsAPI {
		body, kind = []byte(form(d).Encode()), "application/x-www-form-urlencoded"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, hook.URL, bytes.NewReader(body))
	if err != nil {
		return nil, "connection_failed", true
	}
	request.Header = h.sign(hook.Secret, time.Now(), body)
	request.Header.Set("Content-Type", kind)
	if attempt > 0 {
		request.Header.Set("X-Slack-Retry-Num", strconv.Itoa(attempt))
		request.Header.Set("X-Slack-Retry-Reason", before)
	}
	response, err := hook.Client.Do(request)
	if err != nil {
		return nil, failure(err), false
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(response.Body, wire.MaxRequest))
	switch {
	case err != nil:
		return nil, failure(err), false
	case response.StatusCode < 200 || response.StatusCode > 299:
		return answer, "http_error", strings.TrimSpace(response.Header.Get("X-Slack-No-Retry")) == "1"
	}
	return answer, "", false
}

// failure returns Slack's name for a call without a response.
func failure(err error) string {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return "http_timeout"
	}
	return "connection_failed"
}
