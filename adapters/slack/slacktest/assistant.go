package slacktest

import (
	"encoding/json"
	"net/url"
	"time"

	"parley/adapters/slack/slacktest/internal/wire"
)

// statusAge is the lifetime of a status without a later message.
// https://docs.slack.dev/reference/methods/assistant.threads.setStatus
const statusAge = 2 * time.Minute

// maxPrompts bounds the prompts of an assistant thread.
// https://docs.slack.dev/reference/methods/assistant.threads.setSuggestedPrompts
const maxPrompts = 4

// status is the status text of an assistant thread and the time when it was set.
type status struct {
	text string
	at   time.Time
}

// Prompt is a suggested prompt of an assistant thread.
type Prompt struct {
	Title   string `json:"title"`
	Message string `json:"message"`
}

// assistantThread contains the title and the prompts of an assistant thread.
type assistantThread struct {
	title   string
	heading string // of the prompts
	prompts []Prompt
}

// maxAssistantThreads bounds the threads whose title and prompts the server stores.
const maxAssistantThreads = 100_000

// Status returns the status that is shown below a thread. It is empty if none was set, a
// message of ours followed, or two minutes have passed.
func (s *Server) Status(channel, threadTS string) string {
	c := s.channel(channel)
	c.mu.Lock()
	defer c.mu.Unlock()
	set, found := c.statuses[threadTS]
	if !found || s.options.Now().Sub(set.at) >= statusAge {
		return ""
	}
	return set.text
}

// Title returns an assistant thread's title.
func (s *Server) Title(channel, threadTS string) string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.assistants[channel+"/"+threadTS].title
}

// Prompts returns an assistant thread's heading and prompts.
func (s *Server) Prompts(channel, threadTS string) (heading string, prompts []Prompt) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	thread := s.assistants[channel+"/"+threadTS]
	return thread.heading, thread.prompts
}

// setStatus is assistant.threads.setStatus. An empty status clears the status.
// https://docs.slack.dev/reference/methods/assistant.threads.setStatus
func (s *Server) setStatus(form url.Values) []byte {
	id, ts := form.Get("channel_id"), form.Get("thread_ts")
	switch {
	case id == "":
		return wire.Refusal("channel_not_found")
	case microseconds(ts) == 0:
		return wire.Refusal("invalid_thread_ts")
	case !form.Has("status"):
		return wire.Missing("status")
	}
	c := s.channel(id)
	c.mu.Lock()
	defer c.mu.Unlock()
	if text := form.Get("status"); text != "" {
		c.statuses[ts] = status{text, s.options.Now()}
	} else {
		delete(c.statuses, ts)
	}
	return wire.Encode(map[string]any{"ok": true})
}

// setTitle is assistant.threads.setTitle.
// https://docs.slack.dev/reference/methods/assistant.threads.setTitle
func (s *Server) setTitle(form url.Values) []byte {
	for _, argument := range []string{"title", "thread_ts"} {
		if form.Get(argument) == "" {
			return wire.Missing(argument)
		}
	}
	return s.describeThread(form, func(thread *assistantThread) { thread.title = form.Get("title") })
}

// setPrompts is assistant.threads.setSuggestedPrompts. Without a thread, the prompts belong
// to the channel.
// https://docs.slack.dev/reference/methods/assistant.threads.setSuggestedPrompts
func (s *Server) setPrompts(form url.Values) []byte {
	var prompts []Prompt
	if json.Unmarshal([]byte(form.Get("prompts")), &prompts) != nil || len(prompts) == 0 || len(prompts) > maxPrompts {
		return wire.Refusal("invalid_arguments")
	}
	for _, p := range prompts {
		if p.Title == "" || p.Message == "" {
			return wire.Refusal("invalid_arguments")
		}
	}
	return s.describeThread(form, func(thread *assistantThread) { thread.heading, thread.prompts = form.Get("title"), prompts })
}

// describeThread changes the assistant thread that the call names. Only direct messages have
// such threads.
func (s *Server) describeThread(form url.Values, do func(*assistantThread)) []byte {
	id, ts := form.Get("channel_id"), form.Get("thread_ts")
	switch {
	case id == "":
		return wire.Refusal("channel_not_found")
	case s.kindOf(id) != DirectMessage:
		return wire.Refusal("method_not_supported_for_channel_type")
	case microseconds(ts) == 0 && form.Has("thread_ts"):
		return wire.Refusal("invalid_thread_ts")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	thread, known := s.assistants[id+"/"+ts]
	if !known && len(s.assistants) == maxAssistantThreads {
		return wire.Refusal("internal_error")
	}
	do(&thread)
	s.assistants[id+"/"+ts] = thread
	return wire.Encode(map[string]any{"ok": true})
}
