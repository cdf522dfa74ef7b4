package slack

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/slack-go/slack"

	"parley/adapters"
	"parley/adapters/slack/payload"
)

// call makes one call, bounded by the configured timeout, and decodes the answer. It does not
// use slack-go, which decodes whole messages: if one message has a block that slack-go can't
// decode, the other messages would be lost.
func (a *Adapter) call(ctx context.Context, method string, query url.Values, answer answer) error {
	ctx, cancel := context.WithTimeout(ctx, a.config.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, a.base.JoinPath(method).String(), strings.NewReader(query.Encode()))
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Authorization", "Bearer "+a.config.BotToken.Reveal())
	response, err := a.web.Do(request)
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	if err := json.NewDecoder(response.Body).Decode(answer); err != nil {
		return fmt.Errorf("%s: decode the answer: %w", method, err)
	}
	err = answer.refused()
	if code := refusedCode(err); code != "" && refusal(method, code) == adapters.RateLimited {
		err = a.web.limited(method, minRetry, err)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	return nil
}

// answer is the decoded answer of a method. Implementations embed wireAnswer.
type answer interface{ refused() error }

// wireAnswer has the fields that every answer has.
type wireAnswer struct{ slack.SlackResponse }

func (w *wireAnswer) refused() error {
	if w.Ok {
		return nil
	}
	return slack.SlackErrorResponse{Err: payload.FirstOf(w.Error, "no reason given")}
}

// next returns the cursor of the page that follows the answer to a query. It is empty
// if there is none, or if Slack repeats the query's cursor.
func (w *wireAnswer) next(query url.Values) string {
	next := w.ResponseMetadata.Cursor
	if next == query.Get("cursor") {
		return ""
	}
	return next
}

// messagePage is one answer of conversations.history or conversations.replies.
type messagePage struct {
	wireAnswer
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
