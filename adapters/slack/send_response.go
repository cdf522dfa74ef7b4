package slack

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"parley/adapters"
	"parley/adapters/httpcall"
	"parley/adapters/markdown"
	"parley/adapters/slack/payload"
)

// A user may give a command in a channel without the bot. Slack then refuses every post, but takes
// a few messages at the command's response URL.
// https://docs.slack.dev/interactivity/handling-user-interaction#message_responses
const (
	// maxResponses is the number of messages that a response URL takes.
	maxResponses = 5
	// maxResponse bounds the text of a message at a response URL, in characters. Slack cuts a longer one.
	maxResponse = 39_000
)

// notHere are the codes of a post in a channel that has no bot of ours.
var notHere = []string{"not_in_channel", "channel_not_found"}

// UseState implements adapters.Stateful.
func (a *Adapter) UseState(state adapters.State) { a.state = state }

// respond posts a text at the response URL of the command that the post answers, if Slack has
// refused the post because the bot is not in the channel. It returns false for any other post.
func (a *Adapter) respond(ctx context.Context, post adapters.Post, refused error, kind string) (ok bool, err error) {
	if a.state == nil || post.Growing || !strings.HasPrefix(post.To.Place, payload.CommandPrefix) || !slices.Contains(notHere, refusedCode(refused)) {
		return false, nil
	}
	text := post.Text
	if post.File != nil {
		kind, text = "ephemeral", "I can't post the file "+post.File.Name+" here. Invite me to the channel with /invite, and ask again."
	}
	target, err := a.useResponse(ctx, post.To.Place)
	if err != nil {
		return true, err
	}
	whole := strings.Join(markdown.Format(text, markdown.Slack, maxResponse), "\n")
	body, _ := json.Marshal(map[string]string{"response_type": kind, "text": whole}) // strings always encode
	ctx, cancel := context.WithTimeout(ctx, a.config.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(body))
	if err != nil {
		return true, adapters.Permanently("the response url of the command can't be read")
	}
	request.Header.Set("Content-Type", "application/json; charset=utf-8")
	response, _, err := httpcall.Do(a.web.client, request, maxAnswer)
	if err != nil {
		return true, err
	}
	failure := &adapters.SendError{Failure: adapters.Permanent, Err: fmt.Errorf("the response url of the command answered %s", response.Status)}
	switch code := response.StatusCode; {
	case code < 300:
		return true, nil
	case code == http.StatusTooManyRequests:
		failure.Failure, failure.RetryAfter, failure.Scope = adapters.RateLimited, retryAfter(response.Header), adapters.ScopeChannel
	case code >= 500:
		failure.Failure = adapters.Unclear
	}
	return true, failure
}

// useResponse counts one use of a command's response URL, and returns the URL.
func (a *Adapter) useResponse(ctx context.Context, command string) (target string, err error) {
	err = adapters.UpdateList(ctx, a.state, payload.ResponsesName, func(list []payload.Response) []payload.Response {
		target = ""
		for i := range list {
			if c := &list[i]; c.ID == command && c.Used < maxResponses && a.now().Sub(c.At) < payload.ResponsesFor {
				c.Used++
				target = c.URL
			}
		}
		return list
	})
	if err != nil {
		return "", &adapters.SendError{Failure: adapters.NotSent, Err: fmt.Errorf("read a command: %w", err)}
	}
	location, err := url.Parse(target)
	switch {
	case target == "":
		return "", adapters.Permanently("the bot is not in the channel, and the command takes no more answers: invite the bot to the channel")
	case err != nil || !httpcall.IsAt(location, a.base, slackDomains...):
		return "", &adapters.SendError{Failure: adapters.Permanent, Err: errors.New("the response url of the command is not slack's")}
	}
	return target, nil
}

// responseID returns the external id of a message at a response URL, for which Slack gives none.
func responseID(post adapters.Post) string {
	return payload.MessageID(post.To.Channel, "response-"+post.Key)
}
