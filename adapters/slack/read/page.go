package read

import (
	"encoding/json"
	"net/url"

	"parley/adapters/slack/call"
)

// messagePage is one answer of conversations.history or conversations.replies.
type messagePage struct {
	call.Answer
	Messages []json.RawMessage `json:"messages"`
	HasMore  bool              `json:"has_more"`
}

// eachPage calls read for each page of a query, until there is no next page or read
// fails. read reads the page at the query's cursor, and returns the next page's cursor.
func eachPage(query url.Values, read func() (next string, err error)) error {
	query.Del("cursor")
	for {
		next, err := read()
		if err != nil || next == "" {
			return err
		}
		query.Set("cursor", next)
	}
}
