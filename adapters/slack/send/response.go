package send

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
	"parley/adapters/slack/call"
	"parley/adapters/slack/payload"
)

// A user may give a command or use a shortcut in a channel without the bot. Slack then refuses every post, but takes
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
func (s *Sender) UseState(state adapters.State) { s.state = state }

const (
	// fileRefused, choiceRefused and lastWords tell people what a response URL does not take: files, the presses
	// of buttons, whose thread Slack does not name there, and further messages.
	fileRefused   = "I can't post the file %s here. Invite me to the channel with /invite, and ask again."
	choiceRefused = "I can't take your choice here. Invite me to the channel with /invite, and ask again."
	lastWords     = "Slack takes no more of my words here. If something is missing, invite me to the channel with /invite, and ask again."
)

// respond posts a text at the response URL of the command or the shortcut that the post answers, if Slack has
// refused the post because the bot is not in the channel. It returns false for any other post.
func (s *Sender) respond(ctx context.Context, post adapters.Post, refused error, kind string) (ok bool, err error) {
	if s.state == nil || post.Growing || !slices.Contains(notHere, call.Code(refused)) {
		return false, nil
	}
	responder, isCommand := post.To.Place, strings.HasPrefix(post.To.Place, payload.CommandPrefix)
	if !isCommand {
		responder = payload.ShortcutsOf(post.To.Channel, post.Asker)
	}
	target, last, err := s.useResponse(ctx, responder)
	switch {
	case err != nil:
		return true, err
	case target == "" && !isCommand:
		return false, nil
	case target == "":
		return true, adapters.Permanently("the bot is not in the channel, and the command takes no more answers: invite the bot to the channel")
	}
	text := post.Text
	if post.File != nil {
		kind, text = "ephemeral", fmt.Sprintf(fileRefused, post.File.Name)
	}
	whole := strings.Join(markdown.Format(text, markdown.Slack, maxResponse), "\n")
	for i, b := range post.Buttons {
		whole += fmt.Sprintf("\n%d. %s", i+1, strings.Join(markdown.Format(b.Label, markdown.Slack, maxLabel), " "))
	}
	if len(post.Buttons) > 0 {
		whole += "\n" + choiceRefused
	}
	if last {
		whole += "\n" + lastWords
	}
	body, _ := json.Marshal(map[string]string{"response_type": kind, "text": whole}) // strings always encode
	ctx, cancel := context.WithTimeout(ctx, s.client.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(body))
	if err != nil {
		return true, adapters.Permanently("the response url of the command can't be read")
	}
	request.Header.Set("Content-Type", "application/json; charset=utf-8")
	response, err := s.client.Outside(request)
	if err != nil {
		return true, err
	}
	failure := &adapters.SendError{Failure: adapters.Permanent, Err: fmt.Errorf("the response url of the command answered %s", response.Status)}
	switch code := response.StatusCode; {
	case code < 300:
		return true, nil
	case code == http.StatusTooManyRequests:
		failure.Failure, failure.RetryAfter, failure.Scope = adapters.RateLimited, call.RetryAfter(response.Header), adapters.ScopeChannel
	case code >= 500:
		failure.Failure = adapters.Unclear
	}
	return true, failure
}

// useResponse counts one use of a response URL, and returns it; empty if none is left. last says that it takes
// no further message.
func (s *Sender) useResponse(ctx context.Context, responder string) (target string, last bool, err error) {
	err = adapters.UpdateList(ctx, s.state, payload.ResponsesName, func(list []payload.Response) []payload.Response {
		target = ""
		for i := range list {
			if c := &list[i]; target == "" && c.ID == responder && c.Used < maxResponses && s.client.Now().Sub(c.At) < payload.ResponsesFor {
				c.Used++
				target, last = c.URL, c.Used == maxResponses
			}
		}
		return list
	})
	if err != nil {
		return "", false, &adapters.SendError{Failure: adapters.NotSent, Err: fmt.Errorf("read a command: %w", err)}
	}
	location, err := url.Parse(target)
	if target != "" && (err != nil || !httpcall.IsAt(location, s.client.Base, call.SlackDomains...)) {
		return "", false, &adapters.SendError{Failure: adapters.Permanent, Err: errors.New("the response url of the command is not slack's")}
	}
	return target, last, nil
}

// responseID returns the external id of a message at a response URL, for which Slack gives none.
func responseID(post adapters.Post) string {
	return payload.MessageID(post.To.Channel, "response-"+post.Key)
}
