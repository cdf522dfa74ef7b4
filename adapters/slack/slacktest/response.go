package slacktest

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"parley/adapters/slack/slacktest/internal/wire"
)

// responses is the path of the response URLs of commands.
const responses = "/commands/"

// A response URL works for half an hour and for five responses.
// https://docs.slack.dev/interactivity/handling-user-interaction#message_responses
const (
	responseAge  = 30 * time.Minute
	maxResponses = 5
)

// Response is a message that a response URL has posted.
type Response struct {
	Text string
	// Everybody says that all members of the channel see the message, instead of only the user
	// who gave the command.
	Everybody bool
}

// responseURL is the state of one response URL.
type responseURL struct {
	made   time.Time
	posted []Response
}

// ResponseURL makes a response URL of a command.
func (s *Server) ResponseURL(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commands[name] = &responseURL{made: s.options.Now()}
	return s.url + responses + name
}

// Responses returns the messages that a response URL has posted.
func (s *Server) Responses(name string) []Response {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return append([]Response(nil), s.commands[name].posted...)
}

// serveResponse serves a response URL. The name of the method for Script and Plan is "response_url".
func (s *Server) serveResponse(w http.ResponseWriter, r *http.Request) {
	var message struct {
		Type string `json:"response_type"`
		Text string `json:"text"`
	}
	if json.NewDecoder(http.MaxBytesReader(w, r.Body, wire.MaxRequest)).Decode(&message) != nil || message.Text == "" {
		http.Error(w, "invalid_payload", http.StatusBadRequest)
		return
	}
	if f := s.fault(Call{Method: "response_url"}); f.answers() {
		f.write(w, nil)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	to := s.commands[strings.TrimPrefix(r.URL.Path, responses)]
	switch {
	case to == nil, s.options.Now().Sub(to.made) >= responseAge:
		http.Error(w, "expired_url", http.StatusNotFound)
	case len(to.posted) == maxResponses:
		http.Error(w, "used_url", http.StatusNotFound)
	default:
		to.posted = append(to.posted, Response{message.Text, message.Type == "in_channel"})
		_, _ = w.Write([]byte("ok"))
	}
}
