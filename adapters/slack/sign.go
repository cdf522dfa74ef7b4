package slack

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"parley/adapters"
	"parley/adapters/slack/payload"
)

// The values of Config.Working, which select the working sign.
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

// ShowWorking shows that the agent is working, as configured.
func (a *Adapter) ShowWorking(ctx context.Context, sign adapters.Sign) error {
	switch a.config.Working {
	case WorkingStatus:
		return a.status(ctx, sign, cmp.Or(plainStatus.Replace(sign.Text), a.config.WorkingText))
	case WorkingReaction:
		return a.react(ctx, "reactions.add", sign, a.api.AddReactionContext, "already_reacted")
	}
	return nil
}

// ClearWorking removes the working sign. Slack removes a status when a message follows, but
// not every turn ends with a message.
func (a *Adapter) ClearWorking(ctx context.Context, sign adapters.Sign) error {
	switch a.config.Working {
	case WorkingStatus:
		return a.status(ctx, sign, "")
	case WorkingReaction:
		return a.react(ctx, "reactions.remove", sign, a.api.RemoveReactionContext, "no_reaction", "message_not_found")
	}
	return nil
}

// status calls assistant.threads.setStatus. An empty text removes the status.
// https://docs.slack.dev/reference/methods/assistant.threads.setStatus
func (a *Adapter) status(ctx context.Context, sign adapters.Sign, text string) error {
	thread := payload.ThreadTS(sign.To)
	if thread == "" { // the message is the root of a thread without replies
		_, thread, _ = payload.SplitID(sign.Message)
	}
	if thread == "" {
		return adapters.Permanently("there is no thread that can show a status")
	}
	return a.callOptional("assistant.threads.setStatus", sign, func() error {
		return a.api.SetAssistantThreadsStatusContext(ctx, slack.AssistantThreadsSetStatusParameters{
			ChannelID: sign.To.Channel, ThreadTS: thread, Status: text,
		})
	})
}

// react calls a method of reactions. A refusal with one of the done codes means that
// there is nothing to do, and is no error.
func (a *Adapter) react(ctx context.Context, method string, sign adapters.Sign, call func(context.Context, string, slack.ItemRef) error, done ...string) error {
	channel, ts, err := payload.SplitID(sign.Message)
	if err != nil {
		return err
	}
	return a.callOptional(method, sign, func() error {
		return call(ctx, a.config.WorkingEmoji, slack.NewRefToMessage(channel, ts))
	}, done...)
}

// callOptional makes a call that the whole workspace may refuse. Such a refusal is an
// error once; after it, callOptional skips the method until the refusal expires.
func (a *Adapter) callOptional(method string, sign adapters.Sign, call func() error, done ...string) error {
	if a.refuses(method) {
		return nil
	}
	err := call()
	if slices.Contains(done, refusedCode(err)) {
		return nil
	}
	if slices.Contains(unavailable, refusedCode(err)) {
		a.remember(method)
	}
	if err != nil {
		return a.sendError(method, sign.To.Channel, err)
	}
	return nil
}
