package call

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

// Call makes one call, bounded by the configured timeout, and decodes the answer. It does not
// use slack-go, which decodes whole messages: if one message has a block that slack-go can't
// decode, the other messages would be lost.
func (c *Client) Call(ctx context.Context, method string, query url.Values, into Into) error {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.Base.JoinPath(method).String(), strings.NewReader(query.Encode()))
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Authorization", "Bearer "+c.BotToken.Reveal())
	response, err := c.web.Do(request)
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	if err := json.NewDecoder(response.Body).Decode(into); err != nil {
		return fmt.Errorf("%s: decode the answer: %w", method, err)
	}
	err = into.refused()
	if code := Code(err); code != "" && Refusal(method, code) == adapters.RateLimited {
		err = c.web.limited(method, minRetry, err)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	return nil
}

// Into is the value into which the answer of a method is decoded. It embeds Answer.
type Into interface{ refused() error }

// Answer has the fields that every answer has.
type Answer struct{ slack.SlackResponse }

func (w *Answer) refused() error {
	if w.Ok {
		return nil
	}
	return slack.SlackErrorResponse{Err: payload.FirstOf(w.Error, "no reason given")}
}

// Next returns the cursor of the page that follows the answer to a query. It is empty
// if there is none, or if Slack repeats the query's cursor.
func (w *Answer) Next(query url.Values) string {
	next := w.ResponseMetadata.Cursor
	if next == query.Get("cursor") {
		return ""
	}
	return next
}
