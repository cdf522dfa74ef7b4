// Package wire reads the arguments of a call of Slack's Web API, and writes its answers.
package wire

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// MaxRequest bounds the body of one call, in bytes.
const MaxRequest = 1 << 20

// ReadForm reads arguments in the three forms that Slack accepts: form, JSON, query. A token
// may also be in the Authorization header.
func ReadForm(r *http.Request) (url.Values, error) {
	r.Body = http.MaxBytesReader(nil, r.Body, MaxRequest)
	form := url.Values{}
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind == "application/json" {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, fmt.Errorf("read the body: %w", err)
		}
		var members map[string]json.RawMessage
		if err := json.Unmarshal(body, &members); err != nil && len(body) > 0 {
			return nil, fmt.Errorf("decode the body: %w", err)
		}
		for key, raw := range members {
			form.Set(key, Argument(raw))
		}
	} else {
		if err := r.ParseForm(); err != nil {
			return nil, fmt.Errorf("parse the form: %w", err)
		}
		form = r.Form
	}
	if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		form.Set("token", token)
	}
	return form, nil
}

// Argument returns a JSON value as a form would contain it.
func Argument(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

// IsTrue reads a flag, which is a word or a digit.
func IsTrue(form url.Values, name string) bool {
	set, _ := strconv.ParseBool(form.Get(name))
	return set
}

// Optional returns an argument, or nil if it is empty.
func Optional(form url.Values, name string) *string {
	if value := form.Get(name); value != "" {
		return &value
	}
	return nil
}

// The page sizes of the methods with pages.
// https://docs.slack.dev/apis/web-api/pagination
const (
	defaultPage = 100
	maxPage     = 999
)

// ReadPage reads the limit and the cursor.
func ReadPage(form url.Values) (limit int, from, code string) {
	limit = defaultPage
	if given, err := strconv.Atoi(form.Get("limit")); err == nil && given > 0 {
		limit = min(given, maxPage)
	}
	if cursor := form.Get("cursor"); cursor != "" {
		raw, err := base64.StdEncoding.DecodeString(cursor)
		var ok bool
		if from, ok = strings.CutPrefix(string(raw), "next:"); err != nil || !ok {
			return 0, "", "invalid_cursor"
		}
	}
	return limit, from, ""
}

// CursorAt returns the cursor of the page that begins with the item with that id.
func CursorAt(id string) string { return base64.StdEncoding.EncodeToString([]byte("next:" + id)) }
