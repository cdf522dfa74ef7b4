package card

import (
	"encoding/json"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/net/idna"
)

// View is a card as chats show it: its parts below each other. Its texts are plain: no character of them is markup.
type View struct {
	Status string `json:"status,omitempty"` // one of Statuses
	Parts  []Part `json:"parts"`
}

// Part is a part of a View. Members that its kind does not have are empty.
type Part struct {
	Kind    Kind       `json:"kind"`
	Text    string     `json:"text,omitempty"`    // of a text, and the label of a progress
	Items   []Item     `json:"items,omitempty"`   // of badges, a list and tasks
	Columns []string   `json:"columns,omitempty"` // of a table; none without a head
	Rows    [][]string `json:"rows,omitempty"`    // of a table; of fields, a label and a value each
	URL     string     `json:"url,omitempty"`     // of an image, whose Text is its alt
	Value   float64    `json:"value,omitempty"`   // of a progress, of Max
	Max     float64    `json:"max,omitempty"`
	Buttons []Press    `json:"buttons,omitempty"`
}

// Kind is the kind of a part.
type Kind string

// The kinds of parts.
const (
	KindTitle    Kind = "title"
	KindSubtitle Kind = "subtitle"
	KindText     Kind = "text"
	KindCaption  Kind = "caption"
	KindBadges   Kind = "badges"
	KindFields   Kind = "fields"
	KindTable    Kind = "table"
	KindList     Kind = "list"
	KindTasks    Kind = "tasks"
	KindImage    Kind = "image"
	KindProgress Kind = "progress"
	KindButtons  Kind = "buttons"
	KindDivider  Kind = "divider"
)

// Item is a badge, an entry of a list, or a task.
type Item struct {
	Text   string `json:"text"`
	Status string `json:"status,omitempty"` // of a badge, one of Statuses; of a task, one of TaskStatuses
	Words  string `json:"words,omitempty"`  // of a task, more about its status
}

// TaskStatuses are the states of a task.
var TaskStatuses = []string{"pending", "running", "done", "failed", "skipped", "stopped", "unfinished"}

// Press is a button: it opens an address, or its press is a message to the agent.
type Press struct {
	ID     string `json:"id,omitempty"` // of the button on the platform; empty if it opens an address
	Label  string `json:"label"`
	URL    string `json:"url,omitempty"`
	Action Action `json:"action,omitzero"`
}

// Action tells the agent which button a person pressed.
type Action struct {
	ID    string          `json:"id"`
	Value json.RawMessage `json:"value,omitempty"`
	// Approval says that only approvers may press the button.
	Approval bool `json:"approval,omitempty"`
}

// ViewOf returns a card as chats show it. It has the images of the given hosts alone; any other one becomes a text
// with its address. id names the buttons of actions on the platform, by their number from 0.
func ViewOf(c Card, imageHosts []string, id func(n int) string) View {
	f := flattener{hosts: imageHosts, id: id}
	f.add(c.Root)
	return View{Status: c.Status, Parts: f.parts}
}

// Button returns the button with an id; nil if there is none.
func (v View) Button(id string) *Press {
	for _, p := range v.Parts {
		for i := range p.Buttons {
			if p.Buttons[i].ID == id && id != "" {
				return &p.Buttons[i]
			}
		}
	}
	return nil
}

// Pressed returns the button of a card that has an action; nil if there is none.
func (c Card) Pressed(a Action) *Press {
	for _, p := range ViewOf(c, nil, strconv.Itoa).Parts {
		for i := range p.Buttons {
			if b := &p.Buttons[i]; b.ID != "" && b.Action.ID == a.ID && sameValue(b.Action.Value, a.Value) {
				return b
			}
		}
	}
	return nil
}

// sameValue reports whether two JSON values are equal. None is null.
func sameValue(a, b json.RawMessage) bool {
	var x, y any
	return (a == nil || json.Unmarshal(a, &x) == nil) && (b == nil || json.Unmarshal(b, &y) == nil) && reflect.DeepEqual(x, y)
}

// flattener puts the nodes of a card below each other.
type flattener struct {
	hosts   []string
	id      func(n int) string
	parts   []Part
	buttons int
}

// last returns the last part if it is of a kind that goes on; otherwise a new part.
func (f *flattener) last(kind Kind) *Part {
	if n := len(f.parts); n == 0 || f.parts[n-1].Kind != kind {
		f.parts = append(f.parts, Part{Kind: kind})
	}
	return &f.parts[len(f.parts)-1]
}

// textKinds are the kinds of texts by their roles.
var textKinds = map[string]Kind{"title": KindTitle, "subtitle": KindSubtitle, "caption": KindCaption}

func (f *flattener) add(n Node) {
	switch n.Type {
	case Badge:
		if label := line(n.Label); label != "" {
			p := f.last(KindBadges)
			p.Items = append(p.Items, Item{Text: label, Status: n.Status})
		}
	case Button:
		f.button(n)
	case Image:
		f.image(n)
	case List:
		f.list(n)
	case Table:
		f.table(n)
	case Divider:
		f.parts = append(f.parts, Part{Kind: KindDivider})
	case Progress:
		value, _ := n.Value.(float64)
		f.parts = append(f.parts, Part{Kind: KindProgress, Text: line(n.Label), Value: value, Max: n.Max})
	default:
		f.text(n)
		for _, child := range n.Children {
			f.add(child)
		}
	}
}

// text adds the text of a node, if it has one.
func (f *flattener) text(n Node) {
	kind, ok := textKinds[n.Role]
	if !ok {
		kind = KindText
	}
	s := strings.TrimSpace(wordsOf(n))
	if kind == KindTitle || kind == KindSubtitle {
		s = line(s)
	}
	if s != "" {
		f.parts = append(f.parts, Part{Kind: kind, Text: s})
	}
}

func wordsOf(n Node) string {
	if n.Content != "" {
		return n.Content
	}
	return n.Label
}

func (f *flattener) button(n Node) {
	b := Press{Label: line(n.Label), URL: n.URL}
	if b.URL != "" {
		b.Label = straight(b.Label)
	}
	if b.Label == "" {
		b.Label = "…"
	}
	if b.URL == "" {
		b.ID, b.Action = f.id(f.buttons), actionOf(n)
		f.buttons++
	}
	p := f.last(KindButtons)
	p.Buttons = append(p.Buttons, b)
}

// actionOf returns the action of a button. Without an id of its own, it has the button's value, or else its label.
func actionOf(n Node) (a Action) {
	if n.Action != nil {
		a = *n.Action
	}
	value, _ := n.Value.(string)
	if a.Value == nil && value != "" {
		a.Value = encode(value)
	}
	if a.ID == "" {
		a.ID = n.Label
		if value != "" {
			a.ID = value
		}
	}
	return a
}

func (f *flattener) image(n Node) {
	alt := straight(line(n.Alt))
	if u, err := url.Parse(n.URL); err == nil && slices.ContainsFunc(f.hosts, func(h string) bool { return strings.EqualFold(h, u.Hostname()) }) {
		f.parts = append(f.parts, Part{Kind: KindImage, Text: alt, URL: n.URL})
		return
	}
	f.parts = append(f.parts, Part{Kind: KindText, Text: addressed(alt, n.URL)})
}

// host returns the host of an address in the ASCII form that a browser asks for, so that letters of other alphabets cannot look like those
// of a known name.
func host(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	name, err := idna.Lookup.ToASCII(u.Hostname())
	if err != nil { // a name that no browser opens
		name = strings.Trim(strconv.QuoteToASCII(u.Hostname()), `"`)
	}
	if strings.Contains(name, ":") {
		name = "[" + name + "]"
	}
	if port := u.Port(); port != "" {
		name += ":" + port
	}
	return name
}

// addressed returns a label with its address.
func addressed(label, address string) string {
	if label == "" || label == address {
		return address
	}
	return label + ": " + address
}

func (f *flattener) list(n Node) {
	p, after := Part{Kind: KindList}, flattener{hosts: f.hosts, id: f.id, buttons: f.buttons}
	for _, item := range n.Items {
		if s := after.inline(item); s != "" {
			p.Items = append(p.Items, Item{Text: s})
		}
	}
	if p.Items != nil {
		f.parts = append(f.parts, p)
	}
	f.parts, f.buttons = append(f.parts, after.parts...), after.buttons
}

// table adds a table. One without a head whose rows have two cells is fields.
func (f *flattener) table(n Node) {
	p, after := Part{Kind: KindTable}, flattener{hosts: f.hosts, id: f.id, buttons: f.buttons}
	for _, c := range n.Columns {
		p.Columns = append(p.Columns, line(c))
	}
	width := len(n.Columns)
	for _, row := range n.Rows {
		width = max(width, len(row))
	}
	for _, row := range n.Rows {
		cells := make([]string, width)
		for i, cell := range row {
			cells[i] = after.inline(cell)
		}
		p.Rows = append(p.Rows, cells)
	}
	if p.Columns == nil && p.Rows != nil && !slices.ContainsFunc(p.Rows, func(r []string) bool { return len(r) != 2 || r[0] == "" }) {
		p.Kind = KindFields
	}
	if strings.Join(append(slices.Concat(p.Rows...), p.Columns...), "") != "" {
		f.parts = append(f.parts, p)
	}
	f.parts, f.buttons = append(f.parts, after.parts...), after.buttons
}

// inline returns a node inside a list or a table as one line. It adds what is no text.
func (f *flattener) inline(n Node) string {
	switch n.Type {
	case Button, Divider, Image:
		f.add(n)
		return ""
	case Badge, Progress:
		var one flattener
		if one.add(n); len(one.parts) == 0 {
			return ""
		}
		return one.parts[0].plain()[0]
	case List, Table:
		var words []string
		for _, inner := range append(slices.Concat(n.Rows...), n.Items...) {
			words = append(words, f.inline(inner))
		}
		return joined(words, ", ")
	}
	words := []string{line(wordsOf(n))}
	for _, child := range n.Children {
		words = append(words, f.inline(child))
	}
	return joined(words, " ")
}

// line returns a text in one line.
func line(s string) string { return strings.Join(strings.Fields(s), " ") }

// straight returns a text without the characters that change the order of the characters after them. An address beside it is shown in its
// own order.
func straight(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Bidi_Control, r) {
			return -1
		}
		return r
	}, s)
}

// joined joins the texts that are not empty.
func joined(words []string, by string) string {
	return strings.Join(slices.DeleteFunc(words, func(s string) bool { return s == "" }), by)
}
