package remote

import "encoding/json"

// kept is the data that a provider wants back with the calls of a step: thoughts, signatures, encrypted reasoning. No other model
// takes it.
type kept struct {
	Model string          `json:"model"`
	Said  json.RawMessage `json:"said"`
}

// Keep returns a value that a provider wants back with calls, for Input.Called. The model names the kind of agent too.
func Keep(model string, value any) json.RawMessage {
	said, err := json.Marshal(value)
	if err != nil {
		return nil // a server's JSON that is not valid
	}
	raw, _ := json.Marshal(kept{model, said}) // a text and JSON always encode
	return raw
}

// Kept reads a value that Keep returned for the same model. It reports whether there is one.
func Kept(model string, raw json.RawMessage, value any) bool {
	var k kept
	return json.Unmarshal(raw, &k) == nil && k.Model == model && json.Unmarshal(k.Said, value) == nil
}
