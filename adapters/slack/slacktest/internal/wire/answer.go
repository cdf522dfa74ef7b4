package wire

import "encoding/json"

// Refusal returns the response of a call that Slack refuses with the code.
func Refusal(code string) []byte { return Encode(map[string]any{"ok": false, "error": code}) }

// Encode encodes values of the fake, which always succeeds.
func Encode(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}

// Missing returns the response of a method that lacks a required argument.
func Missing(argument string) []byte {
	text := "[ERROR] missing required field: " + argument
	return Encode(map[string]any{"ok": false, "error": "invalid_arguments",
		"response_metadata": map[string]any{"messages": []string{text}}})
}

// AppendMember appends one more member if it has a value.
func AppendMember(b []byte, name, value string) []byte {
	if value == "" {
		return b
	}
	b = append(b, `,"`+name+`":`...)
	return append(b, Encode(value)...)
}
