package remote

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// ErrorText returns the message of an error, in any of the shapes that servers use, and the
// HTTP status that some of them include; 0 for none. It returns a body of unknown shape unchanged.
func ErrorText(body []byte) (message string, status int) {
	var value any
	if json.Unmarshal(body, &value) != nil {
		return string(body), 0
	}
	words, status := errorWords(value, 0)
	if words == "" {
		return string(body), status
	}
	return words, status
}

// errorMembers are the members that servers put an error or its message into, those that say most
// first. The last one is the answer of the provider behind a gateway, which comes after its message.
var errorMembers = []string{"error", "errors", "message", "msg", "detail", "details", "title", "reason", "metadata", "raw", "base_resp", "status_msg"}

// maxDepth bounds the depth of the members that are read.
const maxDepth = 8

// errorWords returns the message of a decoded error and its status.
func errorWords(value any, depth int) (words string, status int) {
	switch v := value.(type) {
	case string:
		return encodedWords(v, depth)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), asStatus(v)
	case []any:
		if len(v) > 0 && depth < maxDepth {
			return errorWords(v[0], depth+1)
		}
	case map[string]any:
		if depth < maxDepth {
			return objectWords(v, depth)
		}
	}
	return "", 0
}

// encodedWords returns a text, or the message inside it if it is a JSON object.
func encodedWords(text string, depth int) (words string, status int) {
	var inner map[string]any
	if strings.HasPrefix(strings.TrimSpace(text), "{") && json.Unmarshal([]byte(text), &inner) == nil {
		if words, status = errorWords(inner, depth+1); words != "" {
			return words, status
		}
	}
	return text, 0
}

func objectWords(object map[string]any, depth int) (words string, status int) {
	for _, name := range []string{"status", "status_code", "code"} {
		if s := asStatus(object[name]); s != 0 {
			status = s
		}
	}
	for _, name := range errorMembers {
		more, inner := errorWords(object[name], depth+1)
		if status == 0 {
			status = inner
		}
		switch {
		case more == "" || strings.Contains(words, more):
		case words == "":
			words = more
		case name == "raw" || name == "metadata" || name == "detail":
			words += ": " + more
		}
	}
	if path, ok := object["loc"].([]any); ok && words != "" {
		names := make([]string, len(path))
		for i, name := range path {
			names[i] = fmt.Sprint(name)
		}
		words = strings.Join(names, ".") + ": " + words
	}
	switch kind, _ := object["type"].(string); {
	case words == "" && depth > 0:
		words = kind
	case declinedWords.MatchString(kind) && !declinedWords.MatchString(words):
		words += " (" + kind + ")"
	}
	if code, ok := object["code"].(string); ok && asStatus(code) == 0 && words != "" && !strings.Contains(words, code) {
		words += " (" + code + ")"
	}
	return words, status
}

// asStatus returns the status of a failure that a number or a text is; 0 for none.
func asStatus(value any) int {
	n, err := strconv.Atoi(fmt.Sprint(value))
	if err != nil || n < 400 || n > 599 || http.StatusText(n) == "" && n != 529 {
		return 0
	}
	return n
}

// IsFailure reports whether an event without any part of an answer is an error, as vLLM and servers of
// FastAPI write it: with its message at the top. MiniMax writes its state into every event.
// https://www.minimax.io/platform/document/error_code
func IsFailure(event []byte) bool {
	var top struct {
		Object, Type    string
		Message, Detail any
		State           struct {
			Code int `json:"status_code"`
		} `json:"base_resp"`
	}
	return json.Unmarshal(event, &top) == nil && (top.State.Code != 0 || top.Object == "error" || top.Type == "error" || top.Detail != nil || top.Message != nil)
}

// IsError reports whether the member error of an answer says that it failed: some servers always
// write it.
func IsError(raw json.RawMessage) bool {
	switch string(raw) {
	case "", "null", "false", `""`, "{}", "[]", "0":
		return false
	}
	return true
}
