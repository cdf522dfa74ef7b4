package card

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"parley/ingest/event"
)

// The bounds of a card.
const (
	maxBytes = 64 << 10
	maxDepth = 16
	maxNodes = 500
	maxText  = 10_000 // characters of one text
)

// Read reads a uiSchema. Its error is event.FieldErrors, whose fields are paths that begin with path, such as
// uiSchema.root.children[1].status. Members that it does not know are left out. An absent status is info, an
// absent theme default.
func Read(raw json.RawMessage, path string) (c Card, err error) {
	r := reader{nodes: maxNodes}
	if len(raw) > maxBytes {
		return c, event.FieldErrors{{Field: path, Message: fmt.Sprintf("must have at most %d bytes", maxBytes)}}
	}
	m, ok := r.object(path, raw)
	if !ok {
		return c, r.faults
	}
	c = Card{
		Version: r.text(path+".version", m["version"]), Locale: r.text(path+".locale", m["locale"]),
		Status: r.oneOf(path+".status", m["status"], Statuses), Theme: r.oneOf(path+".theme", m["theme"], Themes),
	}
	if c.Status == "" {
		c.Status = Statuses[0]
	}
	if c.Theme == "" {
		c.Theme = Themes[0]
	}
	r.faults.Check(c.Version == Version, path+".version", `must be "`+Version+`"`)
	if given(m["meta"]) {
		if _, ok := r.object(path+".meta", m["meta"]); ok {
			c.Meta = m["meta"]
		}
	}
	r.faults.Check(given(m["root"]), path+".root", "is required: a node such as {\"type\":\"stack\",\"children\":[]}")
	if given(m["root"]) {
		c.Root = r.node(path+".root", m["root"], 1)
	}
	return c, r.faults.Err()
}

// submitted returns the faults of a uiSchema that somebody sends, as Read: it must also have the members that every reader of the
// document counts on.
func submitted(raw json.RawMessage, path string) error {
	_, err := Read(raw, path)
	faults, _ := errors.AsType[event.FieldErrors](err)
	var m, meta map[string]json.RawMessage
	if json.Unmarshal(raw, &m) != nil || m == nil {
		return err
	}
	for _, key := range []string{"locale", "status", "theme"} {
		faults.Check(given(m[key]), path+"."+key, "is required")
	}
	_ = json.Unmarshal(m["meta"], &meta) // Read tells what is no object
	for _, key := range []string{"requestId", "toolId", "traceId", "userId"} {
		faults.Check(!given(meta[key]) || meta[key][0] == '"', path+".meta."+key, "must be a text")
	}
	return faults.Err()
}

// reader reads the parts of a card, and collects their faults.
type reader struct {
	faults event.FieldErrors
	nodes  int // how many more the card may have
}

// given reports whether a member has a value.
func given(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

func (r *reader) object(path string, raw json.RawMessage) (m map[string]json.RawMessage, ok bool) {
	err := json.Unmarshal(raw, &m)
	r.faults.Check(err == nil && m != nil, path, "must be an object")
	return m, err == nil && m != nil
}

// text reads a text; empty for none.
func (r *reader) text(path string, raw json.RawMessage) (s string) {
	if !given(raw) {
		return ""
	}
	if json.Unmarshal(raw, &s) != nil {
		r.faults.Check(false, path, "must be a text")
		return ""
	}
	r.faults.Check(utf8.RuneCountInString(s) <= maxText, path, fmt.Sprintf("must have at most %d characters", maxText))
	return event.Text(s)
}

// oneOf reads a text of a list; empty for none.
func (r *reader) oneOf(path string, raw json.RawMessage, list []string) string {
	s := r.text(path, raw)
	r.faults.Check(s == "" || slices.Contains(list, s), path, "must be one of "+strings.Join(list, ", "))
	return s
}

// number reads a number of 0 or more.
func (r *reader) number(path string, raw json.RawMessage) (n float64) {
	err := json.Unmarshal(raw, &n)
	r.faults.Check(err == nil && n >= 0, path, "must be a number of 0 or more")
	return n
}

// link reads the address that a button opens or of an image.
func (r *reader) link(path string, raw json.RawMessage) string {
	s := r.text(path, raw)
	if s == "" {
		return ""
	}
	u, err := url.Parse(s)
	r.faults.Check(err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "", path, "must be an address of http or https")
	return s
}

// node reads a node. A text or a number becomes a node with this text.
func (r *reader) node(path string, raw json.RawMessage, depth int) (n Node) {
	if r.nodes--; r.nodes < 0 || depth > maxDepth {
		if r.nodes == -1 || depth > maxDepth {
			r.faults.Check(false, path, fmt.Sprintf("is too much: a card has at most %d nodes, %d inside each other", maxNodes, maxDepth))
		}
		return n
	}
	if s, ok := words(raw); ok {
		return Node{Type: Text, Content: s}
	}
	m, ok := r.object(path, raw)
	if !ok {
		return n
	}
	n = Node{
		Type: r.text(path+".type", m["type"]), Appearance: r.text(path+".appearance", m["appearance"]), Content: r.text(path+".content", m["content"]),
		Label: r.text(path+".label", m["label"]), Role: r.text(path+".role", m["role"]), Status: r.oneOf(path+".status", m["status"], Statuses),
		URL: r.link(path+".url", m["url"]), Alt: r.text(path+".alt", m["alt"]),
		Items: r.list(path+".items", m["items"], depth), Children: r.list(path+".children", m["children"], depth),
	}
	r.faults.Check(n.Type != "", path+".type", "is required: the type of the node")
	r.required(path, m, n.Type)
	switch {
	case n.Type == Progress:
		r.progress(path, m, &n)
	case n.Type == Table:
		r.table(path, m, &n, depth)
	case n.Type == Button:
		if given(m["value"]) {
			n.Value = r.text(path+".value", m["value"])
		}
		n.Action = r.action(path, m)
	}
	return n
}

// action reads the action of a button, which is its id or {"id","value","approval"}; nil for none. approval may also be
// a member of the button.
func (r *reader) action(path string, m map[string]json.RawMessage) (a *Action) {
	if !given(m["action"]) && !given(m["approval"]) {
		return nil
	}
	a = new(Action)
	if id, ok := words(m["action"]); ok {
		a.ID = id
	} else if given(m["action"]) {
		if o, ok := r.object(path+".action", m["action"]); ok {
			a.ID, a.Approval = r.text(path+".action.id", o["id"]), r.flag(path+".action.approval", o["approval"])
			if given(o["value"]) {
				a.Value = o["value"]
			}
		}
	}
	a.Approval = r.flag(path+".approval", m["approval"]) || a.Approval
	return a
}

func (r *reader) flag(path string, raw json.RawMessage) (b bool) {
	r.faults.Check(!given(raw) || json.Unmarshal(raw, &b) == nil, path, "must be true or false")
	return b
}

// required are the members that a node of a type must have.
var required = map[string][]string{
	Stack: {"children"}, Text: {"content"}, Badge: {"label"}, Button: {"label"}, Image: {"url"}, List: {"items"}, Table: {"rows"}, Progress: {"value"},
}

func (r *reader) required(path string, m map[string]json.RawMessage, kind string) {
	for _, key := range required[kind] {
		r.faults.Check(given(m[key]), path+"."+key, "is required in a "+kind)
	}
}

func (r *reader) progress(path string, m map[string]json.RawMessage, n *Node) {
	n.Max = 100
	if given(m["max"]) {
		n.Max = r.number(path+".max", m["max"])
		r.faults.Check(n.Max > 0, path+".max", "must be more than 0")
	}
	if given(m["value"]) {
		value := r.number(path+".value", m["value"])
		n.Value = value
		r.faults.Check(value <= n.Max, path+".value", fmt.Sprintf("must be at most %v", n.Max))
	}
}

func (r *reader) table(path string, m map[string]json.RawMessage, n *Node, depth int) {
	for i, raw := range r.values(path+".columns", m["columns"]) {
		n.Columns = append(n.Columns, r.text(index(path+".columns", i), raw))
	}
	for i, raw := range r.values(path+".rows", m["rows"]) {
		row := r.list(index(path+".rows", i), raw, depth)
		r.faults.Check(n.Columns == nil || len(row) <= len(n.Columns), index(path+".rows", i), "has more cells than the table has columns")
		n.Rows = append(n.Rows, row)
	}
}

// list reads a list of nodes.
func (r *reader) list(path string, raw json.RawMessage, depth int) (list []Node) {
	for i, one := range r.values(path, raw) {
		list = append(list, r.node(index(path, i), one, depth+1))
	}
	return list
}

// values reads a list; none if it is absent. A card has no more values than nodes.
func (r *reader) values(path string, raw json.RawMessage) (list []json.RawMessage) {
	if given(raw) {
		r.faults.Check(json.Unmarshal(raw, &list) == nil, path, "must be a list")
	}
	return list[:min(len(list), maxNodes+1)]
}

func index(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// words reads a text, a number or a boolean as words.
func words(raw json.RawMessage) (s string, ok bool) {
	if json.Unmarshal(raw, &s) == nil && given(raw) {
		return event.Text(s), utf8.RuneCountInString(s) <= maxText
	}
	var number json.Number
	if json.Unmarshal(raw, &number) == nil && given(raw) || string(raw) == "true" || string(raw) == "false" {
		return string(raw), true
	}
	return "", false
}
