package stream

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Ask describes the answer to a REQUEST_INPUT.
type Ask struct {
	// Options are the answers to choose from; empty if people answer in their own words.
	Options []Option `json:"options,omitempty"`
	// Approval says that the answer permits the agent to do something: it must be one of the
	// options, and only approvers may give it.
	Approval bool `json:"approval,omitempty"`
	// ExpiresAt is the time after which the agent takes no answer; zero for none.
	ExpiresAt time.Time `json:"expires_at,omitzero"`
}

// Option is an answer to choose.
type Option struct {
	ID    string `json:"id"`
	Label string `json:"label"`
}

// maxOptions bounds the options of a question. A platform with fewer buttons shows a numbered list.
const maxOptions = 100

// Ask reads the details of a REQUEST_INPUT. They contain the options as
// {"ux":{"options":[{"id","label"}]}}, and beside them "approval" and "expires_at" (RFC 3339).
// Details of another shape contain none.
func (m Message) Ask() Ask {
	var details struct {
		UX struct {
			Options []Option `json:"options"`
		} `json:"ux"`
		Approval  bool      `json:"approval"`
		ExpiresAt time.Time `json:"expires_at"`
	}
	if json.Unmarshal(m.Details, &details) != nil {
		return Ask{}
	}
	q := Ask{Approval: details.Approval, ExpiresAt: details.ExpiresAt}
	for _, o := range details.UX.Options {
		o.Label = strings.Join(strings.Fields(o.Label), " ")
		if o.ID == "" || o.Label == "" || len(q.Options) == maxOptions {
			return Ask{Approval: q.Approval, ExpiresAt: q.ExpiresAt}
		}
		q.Options = append(q.Options, o)
	}
	return q
}

// Numbered returns the text of a question with its options, a numbered line each.
func (q Ask) Numbered(text string) string {
	lines := []string{text}
	for i, o := range q.Options {
		if i == 0 {
			lines = append(lines, "")
		}
		lines = append(lines, fmt.Sprintf("%d. %s", i+1, o.Label))
	}
	return strings.Join(lines, "\n")
}
