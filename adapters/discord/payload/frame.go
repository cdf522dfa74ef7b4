package payload

import (
	"bytes"
	"encoding/json"
)

// WithMember adds a member to a JSON object that is not empty.
func WithMember(object []byte, key, value string) []byte {
	body := bytes.TrimSpace(object)
	if len(body) < 2 || body[len(body)-1] != '}' {
		return object
	}
	text, _ := json.Marshal(value) // encoding a string never fails
	added := append(make([]byte, 0, len(body)+len(key)+len(text)+5), body[:len(body)-1]...)
	return append(append(append(added, `,"`+key+`":`...), text...), '}')
}
