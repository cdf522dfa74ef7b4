package acp

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"parley/ingest/event"
	"parley/ingest/stream"
)

// The kinds of options of a permission.
const (
	allowAlways = "allow_always"
	rejectOnce  = "reject_once"
)

// permission is a request of the program for a permission.
type permission struct {
	id      json.RawMessage // of the request
	call    *call
	input   string // of the tool, as JSON; empty for none
	options []option
}

type option struct {
	ID   string `json:"optionId"`
	Name string `json:"name"`
	Kind string `json:"kind"`
}

// find returns the id of the first option of a kind.
func (p *permission) find(kinds ...string) (id string, ok bool) {
	for _, kind := range kinds {
		if i := slices.IndexFunc(p.options, func(o option) bool { return o.Kind == kind }); i >= 0 {
			return p.options[i].ID, true
		}
	}
	return "", false
}

// cancelled is the outcome of a request that nobody decides on.
var cancelled = map[string]any{"outcome": map[string]string{"outcome": "cancelled"}}

func selected(id string) map[string]any {
	return map[string]any{"outcome": map[string]string{"outcome": "selected", "optionId": id}}
}

// maxInput bounds the input of a tool that people see in a question, in bytes.
const maxInput = 2000

// permit decides on a request for a permission, or notes it for the people.
func (r *run) permit(m message) error {
	var asked struct {
		ToolCall json.RawMessage `json:"toolCall"`
		Options  []option        `json:"options"`
	}
	if err := json.Unmarshal(m.Params, &asked); err != nil {
		return r.reply(m.ID, cancelled)
	}
	if err := r.tool(asked.ToolCall); err != nil {
		return err
	}
	var input struct {
		ID       string          `json:"toolCallId"`
		RawInput json.RawMessage `json:"rawInput"`
	}
	_ = json.Unmarshal(asked.ToolCall, &input) // one of another form has none
	p := permission{id: m.ID, call: r.prompt.calls[input.ID], input: cmp.Or(string(input.RawInput), r.inputOf(input.ID))}
	if p.call == nil {
		p.call = &call{Title: "a tool", Kind: "other"}
	}
	for _, o := range asked.Options {
		if o.ID == "" || slices.ContainsFunc(p.options, func(known option) bool { return known.ID == o.ID }) {
			continue
		}
		o.Name = plain(cmp.Or(o.Name, o.ID), 80)
		p.options = append(p.options, o)
	}
	if r.agent.config.Permissions == Deny {
		if id, ok := p.find(rejectOnce, "reject_always"); ok {
			return r.reply(m.ID, selected(id))
		}
		return r.reply(m.ID, cancelled)
	}
	if id, ok := p.find(allowAlways, "allow_once"); ok && r.kept.allows(p.call) {
		if err := r.answer.Say(stream.Message{Type: stream.System, Text: "Allowed for good before: " + p.call.Title}); err != nil {
			return err
		}
		return r.reply(m.ID, selected(id))
	}
	if len(p.options) == 0 {
		return r.reply(m.ID, cancelled)
	}
	r.prompt.asks = append(r.prompt.asks, p)
	return errAsks
}

func (r *run) inputOf(id string) string {
	if c := r.prompt.calls[id]; c != nil {
		return c.input
	}
	return ""
}

// question is the details of the REQUEST_INPUT that a request becomes; see stream.Message.Ask.
type question struct {
	Approval   bool `json:"approval"`
	Permission bool `json:"permission"`
	UX         struct {
		Options []stream.Option `json:"options"`
	} `json:"ux"`
}

// isOurs reports whether a question was a request for a permission.
func isOurs(details json.RawMessage) bool {
	var q question
	return json.Unmarshal(details, &q) == nil && q.Permission
}

// ask ends the run with the question to the people. The prompt waits for them.
func (r *run) ask() error {
	p := &r.prompt.asks[0]
	q := question{Approval: true, Permission: true}
	for _, o := range p.options {
		q.UX.Options = append(q.UX.Options, stream.Option{ID: o.ID, Label: o.Name})
	}
	details, err := json.Marshal(q)
	if err != nil {
		return err
	}
	if err := r.answer.Ask(p.words(), details); err != nil {
		return err
	}
	r.prompt.run = r.input.RunID
	r.open, r.prompt = r.prompt, nil
	return nil
}

// words are the question. The people see what they allow.
func (p *permission) words() string {
	text := fmt.Sprintf("May I do this (%s)?\n%s", p.call.Kind, fence(p.call.Title))
	if input := pretty(p.input); input != "" && input != "{}" {
		text += "\n" + fence(input)
	}
	return text
}

// pretty indents JSON, within a bound.
func pretty(raw string) string {
	var value any
	if json.Unmarshal([]byte(raw), &value) != nil || value == nil {
		return ""
	}
	indented, _ := json.MarshalIndent(value, "", "  ") // decoded JSON always encodes
	text := string(indented)
	if short := event.Beginning(text, maxInput); len(short) < len(text) {
		return short + "\n… (" + fmt.Sprint(len(text)-len(short)) + " bytes more)"
	}
	return text
}

// fence returns a text in a fence that it cannot end.
func fence(text string) string {
	marks := "```"
	for strings.Contains(text, marks) {
		marks += "`"
	}
	return marks + "\n" + strings.ReplaceAll(strings.TrimSpace(text), "\r", "") + "\n" + marks
}

// decide gives the program the decision of the people.
func (r *run) decide(chosen string) error {
	p := r.prompt.asks[0]
	r.prompt.asks = r.prompt.asks[1:]
	i := slices.IndexFunc(p.options, func(o option) bool { return o.ID == chosen })
	if i < 0 {
		return r.reply(p.id, cancelled)
	}
	if p.options[i].Kind == allowAlways {
		if !r.kept.allows(p.call) {
			r.kept.allow(p.call)
			if err := r.keep(); err != nil {
				return err
			}
		}
		said := "From now on I do this in this thread without asking, until /new:\n" + fence(p.call.Title)
		if err := r.answer.Text(said); err != nil {
			return err
		}
		if err := r.answer.Part(); err != nil {
			return err
		}
	}
	if err := r.reply(p.id, selected(chosen)); err != nil {
		return r.fault("session/request_permission", err)
	}
	return nil
}
