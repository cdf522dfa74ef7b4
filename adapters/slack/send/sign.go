package send

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"parley/adapters"
	"parley/adapters/slack/call"
	"parley/adapters/slack/payload"
)

// The values of Settings.Working, which select the working sign.
const (
	WorkingStatus   = "status"   // a line below the thread
	WorkingReaction = "reaction" // an emoji reaction on the message
	WorkingOff      = "off"
)

// maxStatus is the greatest length of an agent's words in a status, in characters. Slack
// shows a status in one line.
const maxStatus = 100

// statusEvery is the time after which a status is set again. Slack removes a status after two
// minutes.
// https://docs.slack.dev/reference/methods/assistant.threads.setStatus
const statusEvery = 90 * time.Second

// plainStatus removes the signs of tokens from an agent's words, so that a status names and
// notifies nobody.
var plainStatus = strings.NewReplacer("<", "‹", ">", "›")

// working returns how the agent's work is shown. A status is in a thread: an answer beside its question in a channel has a
// reaction instead.
func (s *Sender) working(sign adapters.Sign) string {
	if s.settings.Working == WorkingStatus && payload.IsBeside(sign.To) {
		return WorkingReaction
	}
	return s.settings.Working
}

// ShowWorking shows that the agent is working, as configured.
func (s *Sender) ShowWorking(ctx context.Context, sign adapters.Sign) error {
	switch s.working(sign) {
	case WorkingStatus:
		return s.status(ctx, sign, cmp.Or(plainStatus.Replace(sign.Text), s.settings.WorkingText))
	case WorkingReaction:
		return s.react(ctx, "reactions.add", sign, s.settings.WorkingEmoji, s.client.API.AddReactionContext, "already_reacted")
	}
	return nil
}

// ClearWorking removes the working sign. Slack removes a status when a message follows, but
// not every turn ends with a message.
func (s *Sender) ClearWorking(ctx context.Context, sign adapters.Sign) error {
	switch s.working(sign) {
	case WorkingStatus:
		return s.status(ctx, sign, "")
	case WorkingReaction:
		return s.react(ctx, "reactions.remove", sign, s.settings.WorkingEmoji, s.client.API.RemoveReactionContext, "no_reaction", "message_not_found")
	}
	return nil
}

// status calls assistant.threads.setStatus. An empty text removes the status.
// https://docs.slack.dev/reference/methods/assistant.threads.setStatus
func (s *Sender) status(ctx context.Context, sign adapters.Sign, text string) error {
	thread := payload.ThreadTS(sign.To)
	if thread == "" { // the message is the root of a thread without replies
		_, thread, _ = payload.SplitID(sign.Message)
	}
	if thread == "" { // a slash command has no message, and nothing that could show a status
		return nil
	}
	return s.callOptional("assistant.threads.setStatus", sign, func() error {
		return s.client.API.SetAssistantThreadsStatusContext(ctx, slack.AssistantThreadsSetStatusParameters{
			ChannelID: sign.To.Channel, ThreadTS: thread, Status: text,
		})
	})
}

// react calls a method of reactions. A refusal with one of the done codes means that
// there is nothing to do, and is no error. A sign without a message needs no reaction: Slack does not have the
// message that asked.
func (s *Sender) react(ctx context.Context, method string, sign adapters.Sign, emoji string, do func(context.Context, string, slack.ItemRef) error, done ...string) error {
	if sign.Message == "" {
		return nil
	}
	channel, ts, err := payload.SplitID(sign.Message)
	if err != nil {
		return err
	}
	return s.callOptional(method, sign, func() error {
		return do(ctx, emoji, slack.NewRefToMessage(channel, ts))
	}, done...)
}

// callOptional makes a call that the whole workspace may refuse. Such a refusal is an
// error once; after it, callOptional skips the method until the refusal expires.
func (s *Sender) callOptional(method string, sign adapters.Sign, do func() error, done ...string) error {
	if s.client.Refuses(method) {
		return nil
	}
	err := do()
	if slices.Contains(done, call.Code(err)) {
		return nil
	}
	if call.IsUnavailable(err) {
		s.client.Remember(method)
	}
	if err != nil {
		return s.client.SendError(method, sign.To.Channel, err)
	}
	return nil
}
