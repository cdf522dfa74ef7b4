package payload

import (
	"bytes"
	"encoding/json"
	"fmt"
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
func (v *visible) blocks(raw json.RawMessage) { eachText(blockTree(raw), 1, v.line) }

// tables adds the tables among blocks, without the other texts of the blocks.
func (v *visible) tables(raw json.RawMessage) {
	if !bytes.Contains(raw, []byte(`table"`)) { // of most messages, whose blocks repeat their text
		return
	}
	v.eachTable(blockTree(raw), 1)
}

// eachTable adds the tables of blocks, also of those of a message inside.
func (v *visible) eachTable(value any, level int) {
	if level > words.MaxLevels {
		return
	}
	switch value := value.(type) {
	case []any:
		for _, one := range value {
			v.eachTable(one, level+1)
		}
	case map[string]any:
		if isTable(value) {
			eachText(value, level, v.line)
			return
		}
		v.eachTable(value["message"], level+1)
		v.eachTable(value["blocks"], level+1)
	}
}

// isTable reports whether a block is a table. Slack's client makes one of cells that a person pastes.
// https://docs.slack.dev/reference/block-kit/blocks/table-block
// https://docs.slack.dev/reference/block-kit/blocks/data-table-block
func isTable(block map[string]any) bool {
	kind := member(block, "type")
	return kind == "table" || kind == "data_table"
}

// blockTree decodes blocks; nil if they are no JSON, because an app's odd blocks are no reason to refuse its
// message. Numbers keep their digits.
func blockTree(raw json.RawMessage) (tree any) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if decoder.Decode(&tree) != nil {
		return nil
	}
	return tree
}

// pictures adds the descriptions of the images among blocks.
func (v *visible) pictures(raw json.RawMessage) {
	var list []struct {
		AltText shownText `json:"alt_text"`
	}
	_ = json.Unmarshal(raw, &list) // as in attachments
	for _, block := range list {
		v.line(plain(string(block.AltText)))
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
	case kind == "raw_number":
		yield(plain(FirstOf(member(object, "text"), numeral(object["value"]))))
	case level > words.MaxLevels:
	case strings.HasPrefix(kind, "rich_text_"):
		yield(richText(object, level))
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
			if name == "rows" {
				eachRow(object[name], level, yield)
			} else if !isClosed && !slices.Contains(shownMembers, name) && !slices.Contains(hiddenMembers, name) {
				eachText(object[name], level+1, yield)
			}
		}
	}
}

// eachRow calls yield for each row of a table, whose cells are a list.
// https://docs.slack.dev/reference/block-kit/blocks/table-block
// https://docs.slack.dev/reference/block-kit/blocks/data-table-block
func eachRow(rows any, level int, yield func(string)) {
	list, _ := rows.([]any)
	for _, row := range list {
		cells, ok := row.([]any)
		if !ok {
			eachText(row, level+1, yield)
			continue
		}
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

// numeral returns the digits of a number as the payload writes them; empty for another value.
func numeral(value any) string {
	number, _ := value.(json.Number)
	return number.String()
}

// plain encodes a plain text. A token in it mentions no user. Slack may have escaped it.
func plain(text string) string { return angles.Replace(text) }

var angles = strings.NewReplacer("<", "&lt;", ">", "&gt;")

// richText returns an element of a rich_text block as Slack writes it in a message's text: a section,
// list, quote or code block, which contains elements, or a part of a line.
// https://docs.slack.dev/reference/block-kit/blocks/rich-text-block
func richText(e map[string]any, level int) string {
	if level > words.MaxLevels {
		return ""
	}
	switch member(e, "type") {
	case "rich_text_list":
		return richList(e, level)
	case "rich_text_quote":
		return "&gt; " + strings.ReplaceAll(richParts(e, level), "\n", "\n&gt; ")
	case "rich_text_preformatted":
		return "```\n" + richParts(e, level) + "\n```"
	case "rich_text_section":
		return richParts(e, level)
	}
	if token := richToken(e); token != "" {
		return token
	}
	return escape(member(e, "text")+member(e, "label")) + richParts(e, level) // a canvas has a label
}

// richParts joins the elements of an element. The line that Slack ends before the next element
// ends there anyway.
func richParts(e map[string]any, level int) string {
	var out strings.Builder
	for _, part := range elements(e) {
		out.WriteString(richText(part, level+1))
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// richToken returns the text of a part of a line that is no plain text; empty for another part.
func richToken(e map[string]any) string {
	id := func(name string) string {
		if value := member(e, name); IsID(value) {
			return value
		}
		return ""
	}
	switch kind := member(e, "type"); {
	case kind == "emoji":
		return ":" + escape(member(e, "name")) + ":"
	case kind == "user" && id("user_id") != "":
		return mentionToken(id("user_id"))
	case kind == "channel" && id("channel_id") != "":
		return "<#" + id("channel_id") + ">"
	case kind == "usergroup" && id("usergroup_id") != "":
		return "<!subteam^" + id("usergroup_id") + ">"
	case kind == "broadcast" && id("range") != "":
		return "<!" + id("range") + ">"
	case kind == "date":
		return escape(member(e, "fallback"))
	case kind == "color":
		return escape(member(e, "value"))
	case member(e, "url") != "" && member(e, "text") != "": // a link, or a later kind of one
		return "<" + escape(member(e, "url")) + "|" + escape(member(e, "text")) + ">"
	case member(e, "url") != "":
		return "<" + escape(member(e, "url")) + ">"
	}
	return ""
}

// maxIndent is the greatest indentation of a list on Slack.
const maxIndent = 8

// bullets are the marks of a list's items, by the list's indentation.
var bullets = []string{"•", "◦", "▪"}

// richList returns a list, an item a line, with the marks and the indentation that Slack shows.
func richList(e map[string]any, level int) string {
	indent, first := min(count(e, "indent"), maxIndent), count(e, "offset")+1
	var lines []string
	for i, item := range elements(e) {
		mark := bullets[indent%len(bullets)]
		if member(e, "style") == "ordered" {
			mark = ordinal(first+i, indent)
		}
		lines = append(lines, strings.Repeat("    ", indent)+mark+" "+richText(item, level+1))
	}
	return strings.Join(lines, "\n")
}

// elements returns the elements of an element.
func elements(e map[string]any) (list []map[string]any) {
	raw, _ := e["elements"].([]any)
	for _, one := range raw {
		if element, ok := one.(map[string]any); ok {
			list = append(list, element)
		}
	}
	return list
}

// count returns a number of an element, from 0 to a million.
func count(e map[string]any, name string) int {
	number, _ := e[name].(json.Number)
	value, _ := number.Float64()
	return int(min(max(value, 0), 1e6))
}

// ordinal returns the mark of the nth item of a numbered list: Slack shows digits, letters and Roman
// numerals in turn.
func ordinal(n, indent int) string {
	switch indent % 3 {
	case 1:
		if n <= 26 {
			return string(rune('a'+n-1)) + "."
		}
	case 2:
		if n < len(romans) {
			return romans[n] + "."
		}
	}
	return fmt.Sprintf("%d.", n)
}

var romans = strings.Fields("0 i ii iii iv v vi vii viii ix x xi xii xiii xiv xv xvi xvii xviii xix xx")

// escape is the reverse of unescape.
func escape(s string) string { return escaper.Replace(s) }

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
