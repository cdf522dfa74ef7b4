package content

import (
	"encoding/json"
	"html"
	"strings"
	"unicode/utf8"
)

// The limits of blocks, in numbers of things and in characters.
// https://docs.slack.dev/reference/block-kit/blocks
const (
	maxHeader   = 150
	maxFields   = 10
	maxField    = 2_000
	maxElements = 10 // of a context
	maxButtons  = 25
	maxLabel    = 75
	maxActionID = 255
	maxURL      = 3_000
	maxAlt      = 2_000
	maxValue    = 2_000
	maxRows     = 100
	maxColumns  = 20
	maxTable    = 10_000
	maxTasks    = 50 // of a plan; Slack does not document it
	// maxCharacters bounds all texts of a message's blocks together. Slack does not document it; users have measured it.
	// https://github.com/slackapi/bolt-js/issues/2509
	maxCharacters = 13_200
)

// block is a block of a message, as far as the fake checks it.
type block struct {
	Type     string          `json:"type"`
	Text     json.RawMessage `json:"text"`
	Fields   []text          `json:"fields"`
	Elements []element       `json:"elements"`
	ImageURL string          `json:"image_url"`
	Alt      string          `json:"alt_text"`
	Rows     [][]text        `json:"rows"`
	Title    json.RawMessage `json:"title"` // a string of a plan
	Tasks    []task          `json:"tasks"`
}

// task is a task of a plan.
type task struct {
	Type   string `json:"type"`
	ID     string `json:"task_id"`
	Title  string `json:"title"`
	Status string `json:"status"`
}

// text is a text object, or a cell of a table.
type text struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// element is an element of a context or of actions.
type element struct {
	Type     string          `json:"type"`
	Text     json.RawMessage `json:"text"` // an object of a button, a string of a text
	ActionID string          `json:"action_id"`
	URL      string          `json:"url"`
	Value    string          `json:"value"`
}

// is reports whether a text is of one of the types and has at most a number of characters.
func (t text) is(limit int, types ...string) bool {
	n := utf8.RuneCountInString(t.Text)
	return n > 0 && n <= limit && strings.Contains(" "+strings.Join(types, " ")+" ", " "+t.Type+" ")
}

const plain, mrkdwn = "plain_text", "mrkdwn"

// valid reports whether Slack takes the block. It looks at the types that bots post.
func (b block) valid() bool {
	switch b.Type {
	case "header":
		return object(b.Text).is(maxHeader, plain)
	case "section":
		return b.validSection()
	case "context":
		for _, e := range b.Elements {
			var words string
			if e.Type != "image" && (json.Unmarshal(e.Text, &words) != nil || !(text{e.Type, words}).is(maxSection, plain, mrkdwn)) {
				return false
			}
		}
		return len(b.Elements) > 0 && len(b.Elements) <= maxElements
	case "actions":
		return b.validActions()
	case "image":
		return b.ImageURL != "" && utf8.RuneCountInString(b.ImageURL) <= maxURL && b.Alt != "" && utf8.RuneCountInString(b.Alt) <= maxAlt
	case "table":
		return b.validTable()
	case "plan":
		return b.validPlan()
	}
	return true
}

func (b block) validSection() bool {
	if b.Text != nil && !object(b.Text).is(maxSection, plain, mrkdwn) || len(b.Fields) > maxFields {
		return false
	}
	for _, f := range b.Fields {
		if !f.is(maxField, plain, mrkdwn) {
			return false
		}
	}
	return b.Text != nil || len(b.Fields) > 0
}

func (b block) validActions() bool {
	ids := map[string]bool{}
	for _, e := range b.Elements {
		switch {
		case e.ActionID != "" && ids[e.ActionID], utf8.RuneCountInString(e.ActionID) > maxActionID:
			return false
		case e.Type == "button" && (!object(e.Text).is(maxLabel, plain) || len(e.URL) > maxURL || len(e.Value) > maxValue):
			return false
		}
		ids[e.ActionID] = true
	}
	return len(b.Elements) > 0 && len(b.Elements) <= maxButtons
}

func (b block) validTable() bool {
	length := 0
	for _, row := range b.Rows {
		if len(row) == 0 || len(row) > maxColumns || len(row) != len(b.Rows[0]) {
			return false
		}
		for _, cell := range row {
			if cell.Type == "raw_text" && cell.Text == "" {
				return false
			}
			length += utf8.RuneCountInString(cell.Text)
		}
	}
	return len(b.Rows) > 0 && len(b.Rows) <= maxRows && length <= maxTable
}

// validPlan reports whether Slack takes a plan: its tasks have ids of their own, titles, and statuses that Slack knows.
func (b block) validPlan() bool {
	var title string
	_ = json.Unmarshal(b.Title, &title)
	ids := map[string]bool{}
	for _, t := range b.Tasks {
		if t.Type != "task_card" || t.ID == "" || ids[t.ID] || t.Title == "" || !strings.Contains(" pending in_progress complete error ", " "+t.Status+" ") {
			return false
		}
		ids[t.ID] = true
	}
	return title != "" && len(b.Tasks) <= maxTasks
}

func object(raw json.RawMessage) (t text) {
	_ = json.Unmarshal(raw, &t)
	return t
}

// characters returns the length of all texts in the JSON of blocks.
func characters(raw string) (n int) {
	var value any
	_ = json.Unmarshal([]byte(raw), &value)
	var count func(v any)
	count = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, inner := range v {
				count(inner)
			}
		case map[string]any:
			for key, inner := range v {
				if words, ok := inner.(string); ok && (key == "text" || key == "title") {
					n += utf8.RuneCountInString(html.UnescapeString(words))
				} else {
					count(inner)
				}
			}
		}
	}
	count(value)
	return n
}
