package send

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"

	"parley/adapters"
	"parley/adapters/discord/call"
	"parley/adapters/discord/payload"
)

// The values of Settings.Working, which select the sign that the agent works.
const (
	WorkingTyping   = "typing"   // Discord's typing indicator
	WorkingReaction = "reaction" // an emoji on the question
	WorkingOff      = "off"
)

// typingEvery is the time after which the typing indicator is shown again. Discord shows it for
// ten seconds, or until the bot posts.
// https://docs.discord.com/developers/resources/channel#trigger-typing-indicator
const typingEvery = 8 * time.Second

// workingEmoji is the reaction that shows that the agent works.
const workingEmoji = "👀"

// ShowWorking shows that the agent is working, as configured.
func (s *Sender) ShowWorking(ctx context.Context, sign adapters.Sign) error {
	switch s.settings.Working {
	case WorkingTyping:
		err := s.client.Send(ctx, http.MethodPost, "/channels/"+sign.To.Channel+"/typing", nil, nil)
		if err != nil && call.Code(err) != discordgo.ErrCodeUnknownChannel { // a question's thread may not exist yet
			return call.WithAction("show the typing indicator", err)
		}
	case WorkingReaction:
		return s.react(ctx, http.MethodPut, sign, workingEmoji)
	}
	return nil
}

// IsSigned reports whether Discord shows "is thinking" below a message: below a command.
func (s *Sender) IsSigned(message string) bool {
	return strings.HasPrefix(message, payload.CommandPrefix)
}

// ClearWorking removes the reaction, and the deferred responses to commands that got no answer. The
// typing indicator ends by itself.
func (s *Sender) ClearWorking(ctx context.Context, sign adapters.Sign) error {
	if err := s.dismiss(ctx, sign); err != nil || s.settings.Working != WorkingReaction {
		return err
	}
	return s.react(ctx, http.MethodDelete, sign, workingEmoji)
}

// react adds or removes our reaction on the question. It is no error if the message has none or
// is gone. A question of a command has no message.
func (s *Sender) react(ctx context.Context, method string, sign adapters.Sign, emoji string) error {
	if !payload.IsID(sign.Message) {
		return nil
	}
	channel, err := s.questionChannel(ctx, sign)
	if err != nil {
		return call.WithAction("react on a message", err)
	}
	err = s.client.Send(ctx, method, call.MessagePath(channel, sign.Message)+"/reactions/"+url.PathEscape(emoji)+"/@me", nil, nil)
	switch code := call.Code(err); {
	case err == nil, method == http.MethodDelete && (code == discordgo.ErrCodeUnknownMessage || code == discordgo.ErrCodeUnknownEmoji):
		return nil
	}
	return call.WithAction("react on a message", err)
}

// questionChannel returns the channel of the answered message: the parent if the message opens
// its own thread.
func (s *Sender) questionChannel(ctx context.Context, sign adapters.Sign) (string, error) {
	if sign.Message != sign.To.Channel {
		return sign.To.Channel, nil
	}
	q, err := payload.QuestionOf(ctx, s.memory.State, sign.Message)
	if err != nil || q == nil {
		return sign.To.Channel, err
	}
	return q.Channel, nil
}
