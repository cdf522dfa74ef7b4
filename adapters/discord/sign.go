package discord

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"

	"parley/adapters"
	"parley/adapters/discord/payload"
)

// typingEvery is the time after which the typing indicator is shown again. Discord shows it for
// ten seconds, or until the bot posts.
// https://docs.discord.com/developers/resources/channel#trigger-typing-indicator
const typingEvery = 8 * time.Second

// workingEmoji is the reaction that shows that the agent works.
const workingEmoji = "👀"

// ShowWorking shows that the agent is working, as configured.
func (a *Adapter) ShowWorking(ctx context.Context, sign adapters.Sign) error {
	switch a.config.Working {
	case WorkingTyping:
		err := a.send(ctx, http.MethodPost, "/channels/"+sign.To.Channel+"/typing", nil, nil)
		if err != nil && refusedCode(err) != discordgo.ErrCodeUnknownChannel { // a question's thread may not exist yet
			return sendError("show the typing indicator", err)
		}
	case WorkingReaction:
		return a.react(ctx, http.MethodPut, sign)
	}
	return nil
}

// IsSigned reports whether Discord shows "is thinking" below a message: below a command.
func (a *Adapter) IsSigned(message string) bool {
	return strings.HasPrefix(message, payload.CommandPrefix)
}

// ClearWorking removes the reaction, and the deferred responses to commands that got no answer. The
// typing indicator ends by itself.
func (a *Adapter) ClearWorking(ctx context.Context, sign adapters.Sign) error {
	if err := a.dismiss(ctx, sign); err != nil || a.config.Working != WorkingReaction {
		return err
	}
	return a.react(ctx, http.MethodDelete, sign)
}

// react adds or removes our reaction on the question. It is no error if the message has none or
// is gone. A question of a command has no message.
func (a *Adapter) react(ctx context.Context, method string, sign adapters.Sign) error {
	if !payload.IsID(sign.Message) {
		return nil
	}
	channel, err := a.questionChannel(ctx, sign)
	if err != nil {
		return sendError("react on a message", err)
	}
	err = a.send(ctx, method, messagePath(channel, sign.Message)+"/reactions/"+url.PathEscape(workingEmoji)+"/@me", nil, nil)
	switch code := refusedCode(err); {
	case err == nil, method == http.MethodDelete && (code == discordgo.ErrCodeUnknownMessage || code == discordgo.ErrCodeUnknownEmoji):
		return nil
	}
	return sendError("react on a message", err)
}

// questionChannel returns the channel of the answered message: the parent if the message opens
// its own thread.
func (a *Adapter) questionChannel(ctx context.Context, sign adapters.Sign) (string, error) {
	if sign.Message != sign.To.Channel {
		return sign.To.Channel, nil
	}
	q, err := payload.QuestionOf(ctx, a.state, sign.Message)
	if err != nil || q == nil {
		return sign.To.Channel, err
	}
	return q.Channel, nil
}
