package bluebubblestest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// Webhook is a registered webhook.
type Webhook struct {
	ID     int      `json:"id"`
	URL    string   `json:"url"`
	Events []string `json:"events"`
}

// Delivery is an event on its way to the webhooks. The server does not look at the answers.
type Delivery struct{ statuses <-chan int }

// Wait waits for the answer to the first attempt, and returns its status; 0 if there was none.
func (d Delivery) Wait(ctx context.Context) (status int, err error) {
	select {
	case status = <-d.statuses:
		return status, nil
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

// Register registers a webhook, as an operator does in the server's window.
func (s *Server) Register(url string, events ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.register(url, events)
}

// register is Register with the lock held. It does not change the events of a known URL.
func (s *Server) register(url string, events []string) Webhook {
	if i := slices.IndexFunc(s.webhooks, func(w Webhook) bool { return w.URL == url }); i >= 0 {
		return s.webhooks[i]
	}
	s.webhookID++
	w := Webhook{ID: s.webhookID, URL: url, Events: events}
	s.webhooks = append(s.webhooks, w)
	return w
}

// Registered returns the registered webhooks.
func (s *Server) Registered() []Webhook {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.webhooks)
}

// Deregister removes all webhooks.
func (s *Server) Deregister() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.webhooks = nil
}

func (s *Server) listWebhooks(*request) (any, error) { return s.Registered(), nil }

func (s *Server) createWebhook(r *request) (any, error) {
	var b Webhook
	if err := r.decode(&b); err != nil {
		return nil, err
	}
	if b.URL == "" || len(b.Events) == 0 {
		return nil, refuse(http.StatusBadRequest, "Validation Error", "A URL and events are required!")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.register(b.URL, b.Events), nil
}

func (s *Server) deleteWebhook(r *request) (any, error) {
	id, _ := strconv.Atoi(r.PathValue("id"))
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.webhooks)
	s.webhooks = slices.DeleteFunc(s.webhooks, func(w Webhook) bool { return w.ID == id })
	if len(s.webhooks) == before {
		return nil, refuse(http.StatusNotFound, "Database Error", "Webhook does not exist!")
	}
	return nil, nil
}

// fire sends an event about a message in its present state. An update names no chat.
func (s *Server) fire(event, guid, tempGUID string) Delivery {
	s.mu.Lock()
	data := s.row(s.byGUID[guid], false, event != "updated-message", true)
	s.mu.Unlock()
	if tempGUID != "" {
		data["tempGuid"] = tempGUID
	}
	return s.Push(event, data)
}

// Push sends an event to the webhooks that want it. It does not wait.
func (s *Server) Push(event string, data any) Delivery {
	body, err := json.Marshal(map[string]any{"type": event, "data": data})
	if err != nil {
		panic(err) // the values of this package always encode
	}
	return s.PushRaw(event, body)
}

// PushRaw sends a body unchanged to the webhooks that want the event.
func (s *Server) PushRaw(event string, body []byte) Delivery {
	statuses := make(chan int, 1)
	for _, w := range s.Registered() {
		if !slices.Contains(w.Events, event) && !slices.Contains(w.Events, "*") {
			continue
		}
		for _, delay := range s.options.Webhooks(event) {
			s.enter(func() { s.post(w.URL, body, delay, statuses) })
		}
	}
	return Delivery{statuses}
}

// post sends one body once.
func (s *Server) post(url string, body []byte, delay time.Duration, statuses chan<- int) {
	if !s.pass(delay) || s.away.Load() {
		return
	}
	select {
	case s.posting <- struct{}{}:
		defer func() { <-s.posting }()
	case <-s.live.Done():
		return
	}
	status := 0
	if request, err := http.NewRequestWithContext(s.live, http.MethodPost, url, bytes.NewReader(body)); err == nil {
		request.Header.Set("Content-Type", "application/json")
		if response, err := s.client.Do(request); err == nil {
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
			status = response.StatusCode
		}
	}
	select {
	case statuses <- status:
	default:
	}
}
