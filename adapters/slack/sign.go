package slack

import (
	"context"
	"fmt"

	"github.com/slack-go/slack"

	"parley/adapters"
)

// The signs of work that Config.Working chooses from.
const (
	WorkingStatus   = "status"   // a line below the thread
	WorkingReaction = "reaction" // an emoji at the message
	WorkingOff      = "off"
)

// ShowWorking shows that the agent is at work, as configured.
func (a *Adapter) ShowWorking(ctx context.Context, sign adapters.Sign) error {
	switch a.config.Working {
	case WorkingStatus:
		return a.status(ctx, sign, a.config.WorkingText)
	case WorkingReaction:
		return a.react(ctx, "reactions.add", sign, a.api.AddReactionContext, "already_reacted")
	}
	return nil
}

// ClearWorking takes the sign away. Slack does that with a status when a message follows;
// not every turn ends with one.
func (a *Adapter) ClearWorking(ctx context.Context, sign adapters.Sign) error {
	switch a.config.Working {
	case WorkingStatus:
		return a.status(ctx, sign, "")
	case WorkingReaction:
		return a.react(ctx, "reactions.remove", sign, a.api.RemoveReactionContext, "no_reaction", "message_not_found")
	}
	return nil
}

// status calls assistant.threads.setStatus; no text takes the status away.
// https://docs.slack.dev/reference/methods/assistant.threads.setStatus
func (a *Adapter) status(ctx context.Context, sign adapters.Sign, text string) error {
	thread := sign.To.Root
	if thread == "" { // the message begins a thread that nobody has answered in
		_, thread, _ = splitID(sign.Message)
	}
	if thread == "" {
		return permanent("no thread is known that could show a status")
	}
	return a.quietly("assistant.threads.setStatus", sign, func() error {
		return a.api.SetAssistantThreadsStatusContext(ctx, slack.AssistantThreadsSetStatusParameters{
			ChannelID: sign.To.Channel, ThreadTS: thread, Status: text,
		})
	})
}

// react calls a method of reactions; what tells that there is nothing to do is no error.
func (a *Adapter) react(ctx context.Context, method string, sign adapters.Sign, call func(context.Context, string, slack.ItemRef) error, done ...string) error {
	channel, ts, ok := splitID(sign.Message)
	if !ok {
		return permanent(fmt.Sprintf("%q is no message to react to", sign.Message))
	}
	return a.quietly(method, sign, func() error {
		return call(ctx, a.config.WorkingEmoji, slack.NewRefToMessage(channel, ts))
	}, done...)
}

// quietly makes a call whose refusal for all of the workspace is an error once, and
// then not tried again for a while.
func (a *Adapter) quietly(method string, sign adapters.Sign, call func() error, done ...string) error {
	if a.refusals.holds(method, a.now()) {
		return nil
	}
	err := call()
	for _, code := range done {
		if refusedCode(err) == code {
			return nil
		}
	}
	if isRefused(err, isUnavailable) {
		a.refusals.remember(method, a.now())
	}
	if err != nil {
		return sendError(method, sign.To.Channel, err)
	}
	return nil
}
