package payload

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"parley/adapters/words"
)

// shownMembers are the members of a block, in the order of their places on the screen, that a person
// sees. A string is a text there, and everywhere else a value for programs.
// https://docs.slack.dev/reference/block-kit/blocks
var shownMembers = []string{"pretext", "title", "subtitle", "label", "heading", "text", "body", "description", "content", "caption", "placeholder", "hint", "fields"}

// hiddenMembers are seen only after a press.
var hiddenMembers = []string{"confirm", "overflow"}

// blocks adds the texts of blocks, also of blocks of an unknown type.
func (v *visible) blocks(raw json.RawMessage) {
	var tree any
	if json.Unmarshal(raw, &tree) == nil { // an app's odd blocks are no reason to refuse its message
		eachText(tree, 1, v.line)
	}
}

// eachText calls yield for each visible text of a value, in Slack's encoding.
func eachText(value any, level int, yield func(string)) {
	switch value := value.(type) {
	case []any:
		for _, one := range value {
			eachText(one, level, yield)
		}
	case map[string]any:
		eachMember(value, level, yield)
	}
}

// eachMember calls yield for each visible text of a block, or of an object inside one.
func eachMember(object map[string]any, level int, yield func(string)) {
	kind := member(object, "type")
	switch {
	case kind == "mrkdwn":
		yield(member(object, "text"))
	case kind == "plain_text" || kind == "raw_text":
		yield(plain(member(object, "text")))
	case level > words.MaxLevels:
	case strings.HasPrefix(kind, "rich_text_"):
		yield(richText(object, level))
	case kind == "table":
		eachRow(object["rows"], level, yield)
	default:
		for _, name := range shownMembers {
			if text, ok := object[name].(string); ok {
				yield(text)
			} else {
				eachText(object[name], level+1, yield)
			}
		}
		isMenu := strings.HasSuffix(kind, "_select") || kind == "overflow"
		for _, name := range slices.Sorted(maps.Keys(object)) {
			isClosed := isMenu && strings.HasPrefix(name, "option")
			if !isClosed && !slices.Contains(shownMembers, name) && !slices.Contains(hiddenMembers, name) {
				eachText(object[name], level+1, yield)
			}
		}
	}
}

// eachRow calls yield for each row of a table.
// https://docs.slack.dev/reference/block-kit/blocks/table-block
func eachRow(rows any, level int, yield func(string)) {
	list, _ := rows.([]any)
	for _, row := range list {
		cells, _ := row.([]any)
		texts := make([]string, len(cells))
		for i, cell := range cells {
			var parts []string
			eachText(cell, level+1, func(text string) { parts = append(parts, strings.Fields(text)...) })
			texts[i] = strings.Join(parts, " ")
		}
		yield(strings.Join(texts, " | "))
	}
}

// member returns a string of an object; empty if it has none of this name.
func member(object map[string]any, name string) string {
	text, _ := object[name].(string)
	return text
}

// plain encodes a plain text. A token in it mentions no user. Slack may have escaped it.
func plain(text string) string { return angles.Replace(text) }

var angles = strings.NewReplacer("<", "&lt;", ">", "&gt;")
