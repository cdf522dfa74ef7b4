package stream

import (
	"encoding/json"
	"errors"
)

// ParseAnswer reads the answer of an agent behind a webhook: an object with the text content.
// Its other keys are the details of the ANSWER.
func ParseAnswer(raw []byte) (Message, error) {
	var own map[string]json.RawMessage
	var content *string
	if json.Unmarshal(raw, &own) != nil {
		return Message{}, errors.New("the answer is not a JSON object")
	}
	if err := json.Unmarshal(own["content"], &content); err != nil || content == nil {
		return Message{}, errors.New(`the answer has no text "content"`)
	}
	m := Message{Type: Answer, Text: *content}
	if delete(own, "content"); len(own) > 0 {
		m.Details, _ = json.Marshal(own) // valid JSON always encodes
	}
	return m, nil
}
