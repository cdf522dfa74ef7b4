package agui

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/adapters/agent/remote"
	"parley/assembly"
	"parley/assembly/stream"
)

// interrupt is an interrupt of RUN_FINISHED.
type interrupt struct {
	ID             string    `json:"id"`
	Reason         string    `json:"reason"`
	Message        string    `json:"message"`
	ExpiresAt      time.Time `json:"expiresAt"`
	ResponseSchema *schema   `json:"responseSchema"`
}

// schema is the part of a JSON schema that decides about the form of an answer.
type schema struct {
	Type       string             `json:"type"`
	Enum       []string           `json:"enum"`
	Properties map[string]*schema `json:"properties"`
}

// isApproval reports whether the agent asks for permission.
func (i interrupt) isApproval() bool { return i.Reason == "confirmation" || i.Reason == "tool_call" }

// The options of an approval.
const approve, reject = "approve", "reject"

// details are the details of the REQUEST_INPUT that interrupts become; see stream.Message.Ask.
type details struct {
	Interrupts []json.RawMessage `json:"interrupts"`
	UX         *ux               `json:"ux,omitempty"`
	Approval   bool              `json:"approval,omitempty"`
	ExpiresAt  time.Time         `json:"expires_at,omitzero"`
}

type ux struct {
	Options []stream.Option `json:"options"`
}

// interrupts reads interrupts. If a field has another type, the interrupt lacks the rest.
func interrupts(raw []json.RawMessage) []interrupt {
	list := make([]interrupt, len(raw))
	for i := range raw {
		_ = json.Unmarshal(raw[i], &list[i]) // an interrupt without words has none
	}
	return list
}

// ask returns the text of the question that interrupts are, and its details. Approvals have
// two options, and an answer of a fixed set has these. One answer is for all interrupts.
func ask(raw []json.RawMessage) (text string, d details) {
	d.Interrupts = raw
	list := interrupts(raw)
	var lines []string
	for _, i := range list {
		lines = append(lines, cmp.Or(i.Message, i.Reason, "The agent needs an answer to go on."))
		if d.ExpiresAt.IsZero() || !i.ExpiresAt.IsZero() && i.ExpiresAt.Before(d.ExpiresAt) {
			d.ExpiresAt = i.ExpiresAt
		}
	}
	d.Approval = slices.ContainsFunc(list, interrupt.isApproval)
	switch {
	case d.Approval:
		d.UX = &ux{[]stream.Option{{ID: approve, Label: "Approve"}, {ID: reject, Label: "Reject"}}}
	case len(list) == 1 && len(list[0].choices()) > 0:
		d.UX = &ux{}
		for _, choice := range list[0].choices() {
			d.UX.Options = append(d.UX.Options, stream.Option{ID: choice, Label: choice})
		}
	}
	return strings.Join(lines, "\n"), d
}

// choices returns the fixed set of answers; empty for none.
func (i interrupt) choices() []string {
	_, s := i.ResponseSchema.only()
	if s == nil {
		return nil
	}
	return s.Enum
}

// only returns the schema's only property, or the schema itself if it is no object; nil if it
// has several.
func (s *schema) only() (name string, property *schema) {
	if s == nil || s.Type != "object" {
		return "", s
	}
	if len(s.Properties) == 1 {
		for name, property = range s.Properties {
			return name, property
		}
	}
	return "", nil
}

// resumed is an entry of resume.
type resumed struct {
	InterruptID string `json:"interruptId"`
	Status      string `json:"status"` // resolved or cancelled
	Payload     any    `json:"payload,omitempty"`
}

// resume returns an entry for every interrupt of the run that asked; none for no question. An
// interrupt that nobody answered is cancelled.
func resume(r *assembly.Resume) []resumed {
	if r == nil {
		return nil
	}
	var asked details
	if json.Unmarshal(r.Details, &asked) != nil {
		return nil
	}
	var list []resumed
	for _, i := range interrupts(asked.Interrupts) {
		entry := resumed{i.ID, "cancelled", nil}
		if r.Answered {
			entry.Status, entry.Payload = "resolved", i.payload(r)
		}
		list = append(list, entry)
	}
	return list
}

// answers reports whether the run has an answer of people to the agent's question.
func answers(input assembly.Input) bool { return input.Resume != nil && input.Resume.Answered }

// takeAnswer notes durably that the agent gets the answer to its question now. A later attempt must
// not send it again: the agent acts on an approval each time.
func (a *Agent) takeAnswer(input assembly.Input) error {
	switch {
	case !answers(input):
		return nil
	case input.Taken:
		return a.client.Rejected("the agent has got the answer to its question before, and its work on it was interrupted", "")
	}
	return input.Take()
}

// notTaken returns the error of a request. If the agent has certainly not got the answer, a later
// attempt may send it.
func (a *Agent) notTaken(input assembly.Input, cause error) error {
	if fault, ok := errors.AsType[*remote.Error](cause); ok && fault.Refused() && answers(input) {
		return errors.Join(cause, input.Untake())
	}
	return cause
}

// payload returns the answer in the form that the interrupt asks for: the value of the only
// property of an object, or the value itself.
func (i interrupt) payload(r *assembly.Resume) any {
	if i.isApproval() {
		name, property := i.ResponseSchema.only()
		switch approved := r.Option == approve; {
		case property == nil || property.Type != "boolean":
			return map[string]any{"approved": approved}
		case name == "":
			return approved
		default:
			return map[string]any{name: approved}
		}
	}
	text := cmp.Or(r.Option, r.Text)
	name, property := i.ResponseSchema.only()
	if property == nil && i.ResponseSchema != nil && json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	value := property.value(text)
	if name == "" {
		return value
	}
	return map[string]any{name: value}
}

// value returns a text as the schema's type, if it has that form.
func (s *schema) value(text string) any {
	if s != nil && (s.Type == "number" || s.Type == "integer") {
		if _, err := strconv.ParseFloat(text, 64); err == nil && json.Valid([]byte(text)) {
			return json.RawMessage(text)
		}
	}
	return text
}
