package payload

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"

	"parley/adapters/jsonobject"
	"parley/ingest/event"
)

// pollBalloon ends the kind of a message that is a poll of Messages.
const pollBalloon = "com.apple.messages.Polls"

// maxPoll bounds the description of a poll, in bytes.
const maxPoll = 64 << 10

func isPoll(data jsonobject.Fields) bool {
	return strings.HasSuffix(data.Optional().Text("balloonBundleId"), pollBalloon)
}

// isVote reports whether a message is a vote in a poll, or a new option of one. It has no words.
func isVote(data jsonobject.Fields) bool { return isPoll(data) && data.Has("associatedMessageGuid") }

// pollWords returns "(poll)" with the question and a line for each option, as far as the payload has
// them.
func pollWords(data jsonobject.Fields, text string) string {
	title, options := pollOptions(data)
	if title = strings.TrimSpace(title); title == "" {
		title = strings.TrimSpace(text)
	}
	words := strings.TrimSpace("(poll) " + title)
	for _, option := range options {
		words += "\n- " + option
	}
	return words
}

// pollOptions reads the description of a poll, which is JSON in a data: address of its balloon.
func pollOptions(data jsonobject.Fields) (title string, options []string) {
	var poll struct {
		Item struct {
			Title   string `json:"title"`
			Options []struct {
				Text string `json:"text"`
			} `json:"orderedPollOptions"`
		} `json:"item"`
	}
	raw := pollAddress(data)
	raw, isData := strings.CutPrefix(raw, "data:,")
	raw, _, _ = strings.Cut(raw, "?")
	if !isData || len(raw) > maxPoll {
		return "", nil
	}
	if decoded, err := url.PathUnescape(raw); err == nil {
		raw = decoded
	}
	if json.Unmarshal([]byte(raw), &poll) != nil {
		decoded, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(raw, "="))
		if err != nil || json.Unmarshal(decoded, &poll) != nil {
			return "", nil
		}
	}
	for _, option := range poll.Item.Options {
		options = append(options, event.Text(option.Text))
	}
	return event.Text(poll.Item.Title), options
}

// pollAddress returns the address in the balloon's payload, which the server sends with names, or as
// the list of an archive.
func pollAddress(data jsonobject.Fields) string {
	payloads := data.Children("payloadData")
	if one, ok := data.Child("payloadData"); ok {
		payloads = append(payloads, one)
	}
	for _, payload := range payloads {
		if address := payload.Text("URL"); address != "" {
			return address
		}
		var archive []json.RawMessage
		payload.Decode("$objects", "a list", &archive)
		for _, raw := range archive {
			var text string
			if json.Unmarshal(raw, &text) == nil && strings.HasPrefix(text, "data:,") {
				return text
			}
		}
	}
	return ""
}
