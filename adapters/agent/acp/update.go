package acp

import (
	"cmp"
	"encoding/json"
	"fmt"

	"parley/ingest/stream"
)

const (
	// maxCalls bounds the calls of tools that are remembered of a prompt.
	maxCalls = 10_000
	// maxTitle bounds the title of a call, in characters, and maxArguments its input, in bytes.
	maxTitle     = 300
	maxArguments = 16 << 10
)

// call is a call of a tool.
type call struct {
	Title, Kind string
	input       string // JSON; empty if it is unknown or too long
	ended       bool
}

// update takes a notification about the prompt. One of an unknown kind, or of another session, is no part of it.
func (r *run) update(params json.RawMessage) error {
	var n struct {
		SessionID string          `json:"sessionId"`
		Update    json.RawMessage `json:"update"`
	}
	var u struct {
		Kind    string          `json:"sessionUpdate"`
		Content json.RawMessage `json:"content"`
		Entries []struct {
			Content string `json:"content"`
			Status  string `json:"status"`
		} `json:"entries"`
		ModeID string `json:"currentModeId"`
		offered
	}
	if json.Unmarshal(params, &n) != nil || n.SessionID != r.session {
		return nil
	}
	_ = json.Unmarshal(n.Update, &u) // a member of another form is left out
	switch u.Kind {
	case "agent_message_chunk":
		return r.answer.Text(textOf(u.Content))
	case "agent_thought_chunk":
		return r.answer.Thought(textOf(u.Content))
	case "tool_call", "tool_call_update":
		return r.tool(n.Update)
	case "plan":
		tasks, done := []map[string]string{}, 0
		for _, e := range u.Entries {
			tasks = append(tasks, map[string]string{"goal": plain(e.Content, maxTitle), "status": e.Status})
			if e.Status == "completed" {
				done++
			}
		}
		details, err := json.Marshal(map[string]any{"plan": tasks})
		if err != nil {
			return err
		}
		return r.answer.Say(stream.Message{Type: stream.Plan, Text: fmt.Sprintf("Plan (%d of %d)", done, len(tasks)), Details: details})
	case "current_mode_update":
		r.options.set(modeOption, u.ModeID)
	case "config_option_update":
		r.options = u.options()
	}
	return nil
}

// textOf returns the words of a content block.
func textOf(raw json.RawMessage) string {
	var c struct {
		Type     string `json:"type"`
		Text     string `json:"text"`
		Name     string `json:"name"`
		URI      string `json:"uri"`
		Resource struct {
			Text string `json:"text"`
		} `json:"resource"`
	}
	if json.Unmarshal(raw, &c) != nil {
		return ""
	}
	switch c.Type {
	case "text":
		return c.Text
	case "resource":
		return c.Resource.Text
	case "resource_link":
		return "\n" + plain(cmp.Or(c.Name, c.URI), maxTitle) + "\n"
	}
	return ""
}

// tool takes the report of a call of a tool, or of a change of one.
func (r *run) tool(raw json.RawMessage) error {
	var t struct {
		ID       string          `json:"toolCallId"`
		Title    string          `json:"title"`
		Kind     string          `json:"kind"`
		Status   string          `json:"status"`
		RawInput json.RawMessage `json:"rawInput"`
	}
	if json.Unmarshal(raw, &t) != nil || t.ID == "" {
		return nil
	}
	if err := r.tells(); err != nil {
		return err
	}
	known := r.prompt.calls[t.ID]
	begins := known == nil
	if begins {
		if len(r.prompt.calls) >= maxCalls {
			return nil
		}
		known = &call{Title: "a tool", Kind: "other"}
		r.prompt.calls[t.ID] = known
	}
	known.Title = cmp.Or(plain(t.Title, maxTitle), known.Title)
	known.Kind = cmp.Or(plain(t.Kind, 40), known.Kind)
	if len(t.RawInput) > 0 && len(t.RawInput) <= maxArguments && string(t.RawInput) != "null" {
		known.input = string(t.RawInput)
	}
	if begins {
		if err := r.answer.Part(); err != nil { // the words behind it are another paragraph
			return err
		}
		if err := r.say(t.ID, known, "started"); err != nil {
			return err
		}
	}
	if known.ended || t.Status != "completed" && t.Status != "failed" {
		return nil
	}
	known.ended = true
	return r.say(t.ID, known, t.Status)
}

// say tells of a call, in the form of the rows of tools. Its output is not told: a tool may read what not every reader of the thread may see.
func (r *run) say(id string, c *call, happened string) error {
	told := map[string]string{"tool": c.Kind, "tool_event": happened, "tool_use_id": id}
	if happened == "started" && c.input != "" {
		told["arguments"] = c.input
	}
	details, err := json.Marshal(told)
	if err != nil {
		return err
	}
	return r.answer.Say(stream.Message{Type: stream.Update, Text: c.Title, Details: details})
}
