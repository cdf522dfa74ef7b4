package exchange

import (
	"encoding/json"
	"io"
	"net/http"

	"parley/adapters/markdown"
	"parley/ingest/event"
)

// Respond responds with JSON. It returns nil, so that a handler can return it.
func Respond(w http.ResponseWriter, status int, body any) error {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(body) // an error means that the client has disconnected
	return nil
}

// maxHTML bounds the bytes of a text that is rendered. The HTML of a longer one would be a large part of
// the page's memory.
const maxHTML = 256 << 10

// HTML returns the text of an agent as HTML for pages; empty for one that is too long.
func HTML(text string) string {
	if len(text) > maxHTML {
		return ""
	}
	return markdown.HTML(text)
}

// Member is a member of a JSON object.
type Member struct {
	Key   string
	Value any
}

// RespondList responds with a list and further members. It encodes one row at a time, so that the
// answer is never in memory as a whole.
func RespondList[T any](w http.ResponseWriter, key string, list []T, view func(T) any, more ...Member) error {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	write := func(before string, value any) {
		raw, _ := event.JSON(value)                    // each value of a response encodes
		_, _ = w.Write(append([]byte(before), raw...)) // an error means that the client has disconnected
	}
	before := `{"` + key + `":[`
	for _, one := range list {
		write(before, view(one))
		before = ","
	}
	if len(list) == 0 {
		_, _ = io.WriteString(w, before)
	}
	_, _ = io.WriteString(w, "]")
	for _, m := range more {
		write(`,"`+m.Key+`":`, m.Value)
	}
	_, _ = io.WriteString(w, "}\n")
	return nil
}
