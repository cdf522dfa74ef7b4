package slack

import (
	"encoding/json"
	"strings"
)

// richElement is an element of a rich_text block: a section, list, quote or code block, which
// contains elements, or a part of a line.
// https://docs.slack.dev/reference/block-kit/blocks/rich-text-block
type richElement struct {
	Type      string        `json:"type"`
	Elements  []richElement `json:"elements"`
	Text      string        `json:"text"`
	URL       string        `json:"url"`
	Name      string        `json:"name"`
	UserID    string        `json:"user_id"`
	ChannelID string        `json:"channel_id"`
	GroupID   string        `json:"usergroup_id"`
	Range     string        `json:"range"`
	Fallback  string        `json:"fallback"`
}

// richText returns an element of a rich_text block in the encoding of a message's text. It is empty
// for an element of another block or of a kind without words.
func richText(raw json.RawMessage) string {
	var e richElement
	_ = json.Unmarshal(raw, &e) // an app's odd blocks are no reason to refuse its message
	if !strings.HasPrefix(e.Type, "rich_text_") {
		return ""
	}
	return e.encoded()
}

func (e *richElement) encoded() string {
	switch {
	case e.Type == "link" && e.Text != "":
		return "<" + escape(e.URL) + "|" + escape(e.Text) + ">"
	case e.Type == "link":
		return "<" + escape(e.URL) + ">"
	case e.Type == "emoji":
		return ":" + escape(e.Name) + ":"
	case e.Type == "user" && isID(e.UserID):
		return mentionToken(e.UserID)
	case e.Type == "channel" && isID(e.ChannelID):
		return "<#" + e.ChannelID + ">"
	case e.Type == "usergroup" && isID(e.GroupID):
		return "<!subteam^" + e.GroupID + ">"
	case e.Type == "broadcast" && isID(e.Range):
		return "<!" + e.Range + ">"
	case e.Type == "date":
		return escape(e.Fallback)
	}
	parts := []string{escape(e.Text)}
	for i := range e.Elements {
		parts = append(parts, e.Elements[i].encoded())
	}
	if e.Type == "rich_text_list" {
		return strings.Join(parts[1:], "\n")
	}
	return strings.Join(parts, "")
}

// escape is the reverse of unescape.
func escape(s string) string { return escaper.Replace(s) }

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
