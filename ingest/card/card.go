// Package card has the cards of agents: a small user interface beside a text, as uiSchema 2.0 describes
// it. Compile makes the card of an answer or of a tool's result ready to be stored and shown.
package card

import (
	"encoding/json"
)

// Version is the version of the schema.
const Version = "2.0"

// The types of nodes. A node of any other type shows its text and its children.
const (
	Stack    = "stack"    // children one below the other, such as the appearance card
	Text     = "text"     // content, with a role such as title or body
	Badge    = "badge"    // a label, with a status
	Button   = "button"   // a label, and a url that it opens, an action, or a value that it says for the person
	Image    = "image"    // a url, and alt
	List     = "list"     // items
	Table    = "table"    // columns and rows
	Divider  = "divider"  // a line
	Progress = "progress" // a value of max (100 if it is absent), and a label
)

// Statuses and Themes are the values of status and theme.
var (
	Statuses = []string{"info", "success", "warning", "error", "pending"}
	Themes   = []string{"default", "light", "dark"}
)

// Card is a uiSchema.
type Card struct {
	Version string          `json:"version"` // Version
	Locale  string          `json:"locale"`  // the language of the texts, such as zh-CN
	Status  string          `json:"status"`  // one of Statuses
	Theme   string          `json:"theme"`   // one of Themes
	Meta    json.RawMessage `json:"meta,omitempty"`
	Root    Node            `json:"root"`
}

// Node is a part of a card. Members that its type does not have are empty.
type Node struct {
	Type       string   `json:"type"`
	Appearance string   `json:"appearance,omitempty"`
	Content    string   `json:"content,omitempty"`
	Label      string   `json:"label,omitempty"`
	Role       string   `json:"role,omitempty"`
	Status     string   `json:"status,omitempty"` // one of Statuses
	URL        string   `json:"url,omitempty"`    // http or https
	Alt        string   `json:"alt,omitempty"`
	Value      any      `json:"value,omitempty"` // a string of a button, a number of a progress
	Max        float64  `json:"max,omitempty"`
	Columns    []string `json:"columns,omitempty"`
	Rows       [][]Node `json:"rows,omitempty"`
	Items      []Node   `json:"items,omitempty"`
	Children   []Node   `json:"children,omitempty"`
	Action     *Action  `json:"action,omitempty"` // of a button
}
