package card

import (
	"encoding/json"
	"strings"

	"parley/ingest/event"
)

// unknownLocale is the locale of hints that name none: the undetermined language of BCP 47.
const unknownLocale = "und"

// compile returns the card of an agent's ui_hints: {"status","locale","title","body","badges","items","actions","image",
// "progress"}, each optional. The title, the badges, the image, the body, the items, the progress and the actions stand
// below each other. Hints with a status and without badges have a badge of the status. A badge, an item or
// an action may be a text.
func compile(raw json.RawMessage, path string) (c Card, err error) {
	r := reader{nodes: maxNodes}
	if len(raw) > maxBytes {
		return c, event.FieldErrors{{Field: path, Message: "is too long"}}
	}
	m, ok := r.object(path, raw)
	if !ok {
		return c, r.faults
	}
	for key := range m {
		r.faults.Check(strings.Contains(" status locale title body badges items actions image progress ", " "+key+" "), path+"."+key, "is not a hint")
	}
	status := r.oneOf(path+".status", m["status"], Statuses)
	c = Card{Version: Version, Locale: r.text(path+".locale", m["locale"]), Status: status, Theme: Themes[0], Root: Node{Type: Stack, Appearance: "card"}}
	if c.Locale == "" {
		c.Locale = unknownLocale
	}
	if c.Status == "" {
		c.Status = Statuses[0]
	}
	add := func(list ...Node) { c.Root.Children = append(c.Root.Children, list...) }
	if title := r.text(path+".title", m["title"]); title != "" {
		add(Node{Type: Text, Content: title, Role: "title"})
	}
	badges := r.hints(path+".badges", m["badges"], Badge)
	for i := range badges {
		if badges[i].Status == "" {
			badges[i].Status = status
		}
	}
	if badges == nil && status != "" {
		badges = []Node{{Type: Badge, Label: strings.ToUpper(status), Status: status}}
	}
	add(badges...)
	add(r.hint(path+".image", m["image"], Image)...)
	if body := r.text(path+".body", m["body"]); body != "" {
		add(Node{Type: Text, Content: body, Role: "body"})
	}
	if items := r.hints(path+".items", m["items"], Text); items != nil {
		add(Node{Type: List, Items: items})
	}
	add(r.hint(path+".progress", m["progress"], Progress)...)
	if actions := r.hints(path+".actions", m["actions"], Button); actions != nil {
		add(Node{Type: Stack, Appearance: "actions", Children: actions})
	}
	return c, r.faults.Err()
}

// hints reads a list of hints as nodes of a type.
func (r *reader) hints(path string, raw json.RawMessage, kind string) (list []Node) {
	for i, one := range r.values(path, raw) {
		list = append(list, r.hint(index(path, i), one, kind)...)
	}
	return list
}

// shorthand names the member that a text or a number in place of a node becomes, by the type of the node.
var shorthand = map[string]string{Badge: "label", Button: "label", Image: "url", Progress: "value", Text: "content"}

// hint reads one hint as a node of a type; none if it is absent. A text or a number is the member that
// shorthand names. An item with label and value is both in one line, and a button without a target says its
// label.
func (r *reader) hint(path string, raw json.RawMessage, kind string) []Node {
	if !given(raw) {
		return nil
	}
	value := raw
	if text, ok := words(raw); ok && kind != Progress {
		value = encode(text)
	}
	m := map[string]json.RawMessage{shorthand[kind]: value}
	if raw[0] == '{' {
		var ok bool
		if m, ok = r.object(path, raw); !ok {
			return nil
		}
	}
	if kind == Text && given(m["label"]) && given(m["value"]) {
		value, _ := words(m["value"])
		m = map[string]json.RawMessage{"content": encode(r.text(path+".label", m["label"]) + ": " + value)}
	}
	if kind == Button && !given(m["url"]) && !given(m["value"]) && !given(m["action"]) {
		m["value"] = m["label"]
	}
	m["type"] = encode(kind)
	node, _ := json.Marshal(m) // valid JSON always encodes
	return []Node{r.node(path, node, 2)}
}

func encode(s string) json.RawMessage {
	raw, _ := json.Marshal(s) // a text always encodes
	return raw
}
