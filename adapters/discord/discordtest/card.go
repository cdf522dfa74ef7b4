package discordtest

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// The limits of embeds, in numbers of things and in characters.
// https://docs.discord.com/developers/resources/message#embed-object-embed-limits
const (
	maxEmbeds      = 10
	maxEmbedTitle  = 256
	maxDescription = 4096
	maxFields      = 25
	maxFieldName   = 256
	maxFieldValue  = 1024
	maxFooter      = 2048
	maxEmbedded    = 6000 // of all embeds of a message
)

// The limits of rows of buttons.
// https://docs.discord.com/developers/components/reference
const maxRows, maxRow, maxLabel, maxCustomID, maxURL = 5, 5, 80, 100, 512

// The styles of buttons.
const primary, link = 1, 5

// parts are the embeds and components of a call. A part that is nil does not change.
type parts struct {
	Embeds     json.RawMessage `json:"embeds"`
	Components json.RawMessage `json:"components"`
}

// show gives a message the parts of a call, or returns the refusal of its content.
func (s *Server) show(m *Message, p parts, files int) *refusal {
	if !validEmbeds(p.Embeds) || !validComponents(p.Components) || utf8.RuneCountInString(m.Content) > maxContent {
		return &invalidForm
	}
	if p.Embeds != nil {
		m.Embeds = p.Embeds
	}
	if p.Components != nil {
		m.Components = p.Components
	}
	if s.options.NoEmbeds || string(m.Embeds) == "[]" {
		m.Embeds = nil
	}
	if strings.TrimSpace(m.Content) == "" && files == 0 && m.Embeds == nil {
		return &emptyMessage
	}
	return nil
}

func validEmbeds(raw json.RawMessage) bool {
	if raw == nil {
		return true
	}
	var embeds []struct {
		Title, Description string
		Fields             []struct{ Name, Value string }
		Footer             struct{ Text string }
		Image              struct{ URL string }
	}
	if json.Unmarshal(raw, &embeds) != nil || len(embeds) > maxEmbeds {
		return false
	}
	valid, total := true, 0
	count := func(text string, limit int, needed bool) {
		n := utf8.RuneCountInString(text)
		valid = valid && n <= limit && (n > 0 || !needed)
		total += n
	}
	for _, e := range embeds {
		count(e.Title, maxEmbedTitle, false)
		count(e.Description, maxDescription, false)
		count(e.Footer.Text, maxFooter, false)
		for _, f := range e.Fields {
			count(f.Name, maxFieldName, true)
			count(f.Value, maxFieldValue, true)
		}
		shows := e.Title != "" || e.Description != "" || e.Image.URL != "" || len(e.Fields) > 0
		valid = valid && shows && len(e.Fields) <= maxFields
	}
	return valid && total <= maxEmbedded
}

func validComponents(raw json.RawMessage) bool {
	if raw == nil {
		return true
	}
	var rows []struct {
		Components []struct {
			Style    int
			Label    string
			CustomID string `json:"custom_id"`
			URL      string
		}
	}
	if json.Unmarshal(raw, &rows) != nil || len(rows) > maxRows {
		return false
	}
	ids := map[string]bool{}
	for _, row := range rows {
		if len(row.Components) == 0 || len(row.Components) > maxRow {
			return false
		}
		for _, b := range row.Components {
			isLink := b.Style == link
			switch {
			case b.Style < primary || b.Style > link, b.Label == "" || utf8.RuneCountInString(b.Label) > maxLabel:
				return false
			case isLink && (b.URL == "" || len(b.URL) > maxURL || b.CustomID != ""):
				return false
			case !isLink && (b.CustomID == "" || len(b.CustomID) > maxCustomID || ids[b.CustomID] || b.URL != ""):
				return false
			}
			ids[b.CustomID] = ids[b.CustomID] || !isLink
		}
	}
	return true
}
