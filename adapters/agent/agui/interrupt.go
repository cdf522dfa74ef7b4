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
	"parley/ingest/stream"
)

// interrupt is an interrupt of RUN_FINISHED.
type interrupt struct {
	ID, Reason, Message string
	ExpiresAt           time.Time
	ResponseSchema      *schema

	// fault says that the time of ExpiresAt cannot be read; empty otherwise.
	fault string
}

// UnmarshalJSON reads each member alone: one of another form than the protocol's costs nothing but itself. A time
// without a zone is UTC, as Python's isoformat writes it.
func (i *interrupt) UnmarshalJSON(raw []byte) error {
	members := map[string]json.RawMessage{}
	_ = json.Unmarshal(raw, &members) // an interrupt that is no object has no words
	*i = interrupt{ID: text(members["id"]), Reason: text(members["reason"]), Message: text(members["message"])}
	if json.Unmarshal(members["responseSchema"], &i.ResponseSchema) != nil {
		i.ResponseSchema = nil
	}
	at := members["expiresAt"]
	if len(at) == 0 || string(at) == "null" {
		return nil
	}
	var err error
	for _, form := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05"} {
		if i.ExpiresAt, err = time.Parse(form, text(at)); err == nil {
			return nil
		}
	}
	i.fault = "The time expiresAt of a question cannot be read, so the question does not expire by it: " + remote.Plain(string(at), 60)
	return nil
}

// schema is the part of a JSON schema that decides about the form of an answer.
type schema struct {
	Type       string
	Choices    []choice // the values of enum, or the constants of oneOf and anyOf; nil for any other schema
	Properties map[string]*schema
}

// choice is a value of a fixed set, with what people call it.
type choice struct {
	value json.RawMessage // a text, a number or a boolean
	label string
}

// id is the choice's id among the options: the text, or the JSON of another value.
func (c choice) id() string {
	if s := text(c.value); s != "" {
		return s
	}
	return string(c.value)
}

// UnmarshalJSON reads each member alone. A schema that is true or false says nothing about the form.
func (s *schema) UnmarshalJSON(raw []byte) error {
	members := map[string]json.RawMessage{}
	if json.Unmarshal(raw, &members) != nil {
		return nil
	}
	s.Type = text(members["type"])
	var types []string
	if json.Unmarshal(members["type"], &types) == nil {
		s.Type = cmp.Or(slices.DeleteFunc(types, func(t string) bool { return t == "null" })...)
	}
	_ = json.Unmarshal(members["properties"], &s.Properties)
	var values []json.RawMessage
	_ = json.Unmarshal(members["enum"], &values)
	for _, value := range values {
		s.add(value, "")
	}
	for _, name := range []string{"oneOf", "anyOf"} {
		var constants []struct {
			Const json.RawMessage `json:"const"`
			Title json.RawMessage `json:"title"`
			Type  json.RawMessage `json:"type"`
		}
		if json.Unmarshal(members[name], &constants) != nil || len(s.Choices) > 0 {
			continue
		}
		for _, c := range constants {
			if c.Const == nil && text(c.Type) != "null" { // another answer is possible
				s.Choices = nil
				break
			}
			s.add(c.Const, text(c.Title))
		}
	}
	return nil
}

// add adds a value of a fixed set, unless it is null or no simple value.
func (s *schema) add(value json.RawMessage, label string) {
	if len(value) == 0 || strings.ContainsRune("[{n", rune(value[0])) {
		return
	}
	c := choice{value: value}
	c.label = cmp.Or(label, c.id())
	s.Choices = append(s.Choices, c)
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

// interrupts reads interrupts.
func interrupts(raw []json.RawMessage) []interrupt {
	list := make([]interrupt, len(raw))
	for i := range raw {
		_ = json.Unmarshal(raw[i], &list[i]) // any JSON is an interrupt
	}
	return list
}

// ask returns the text of the question that interrupts are, and its details. Approvals have
// two options, and an answer of a fixed set has these. One answer is for all interrupts. The faults are for the operator.
func ask(raw []json.RawMessage) (text string, d details, faults []string) {
	d.Interrupts = raw
	list := interrupts(raw)
	var lines []string
	for _, i := range list {
		if i.fault != "" {
			faults = append(faults, i.fault)
		}
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
			d.UX.Options = append(d.UX.Options, stream.Option{ID: choice.id(), Label: choice.label})
		}
	}
	return strings.Join(lines, "\n"), d, faults
}

// choices returns the fixed set of answers; empty for none.
func (i interrupt) choices() []choice {
	_, s := i.ResponseSchema.only()
	if s == nil {
		return nil
	}
	return s.Choices
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

// value returns a text as the value of the fixed set that it names, or as the schema's type, if it has that form.
func (s *schema) value(text string) any {
	if s != nil {
		if i := slices.IndexFunc(s.Choices, func(c choice) bool { return c.id() == text }); i >= 0 {
			return s.Choices[i].value
		}
	}
	if s != nil && (s.Type == "number" || s.Type == "integer") {
		if _, err := strconv.ParseFloat(text, 64); err == nil && json.Valid([]byte(text)) {
			return json.RawMessage(text)
		}
	}
	return text
}
