package slack

import (
	"context"
	"fmt"

	"github.com/slack-go/slack"

	"parley/adapters"
	"parley/adapters/slack/payload"
	"parley/ingest/event"
)

const (
	// maxPrompts is the number of prompts that Slack shows in a thread.
	// https://docs.slack.dev/reference/methods/assistant.threads.setSuggestedPrompts
	maxPrompts = 4
	// maxGreetings bounds the waiting greetings. A greeting is a courtesy, so further
	// threads get none.
	maxGreetings = 64
)

// Prompt is a suggestion in a new assistant thread.
type Prompt struct {
	// Title is shown to the user. Slack sends Message in the user's name if the user
	// selects the prompt.
	Title   string `yaml:"title"`
	Message string `yaml:"message"`
}

// assistantGreeting names an assistant thread that a user has started.
type assistantGreeting struct{ channel, thread string }

// requestGreeting requests a greeting of the thread whose start a payload reports, if
// prompts are configured. It does not wait for the greeting.
func (a *Adapter) requestGreeting(p *payload.Payload) {
	var self event.Self
	if known := a.self.Load(); known != nil {
		self = *known
	}
	channel, thread, ok := p.StartedThread(self)
	if len(a.config.SuggestedPrompts) == 0 || !ok {
		return
	}
	select {
	case a.greetings <- assistantGreeting{channel, thread}:
	default:
	}
}

// greetAll greets the requested threads until ctx ends.
func (a *Adapter) greetAll(ctx context.Context, link adapters.Link) {
	for {
		select {
		case <-ctx.Done():
			return
		case g := <-a.greetings:
			if err := a.greet(ctx, g, link); err != nil && ctx.Err() == nil {
				link.Log.Warn("assistant thread not greeted", "channel", g.channel, "err", err)
			}
		}
	}
}

// greet shows the configured prompts in an assistant thread, at most once. The state
// holds each conversation's newest greeted thread, so an older thread gets no greeting
// any more.
func (a *Adapter) greet(ctx context.Context, g assistantGreeting, link adapters.Link) (err error) {
	defer adapters.Recover(link.Log, &err)
	ctx, cancel := context.WithTimeout(ctx, a.config.Timeout)
	defer cancel()
	isNew := false
	err = link.State.Update(ctx, "greeted/"+g.channel, func(newest string) string {
		isNew = newest == "" || payload.SentAt(newest).Before(payload.SentAt(g.thread))
		if isNew {
			return g.thread
		}
		return newest
	})
	if err != nil || !isNew {
		return err
	}
	prompts := slack.AssistantThreadsSetSuggestedPromptsParameters{ChannelID: g.channel, ThreadTS: g.thread}
	for _, p := range a.config.SuggestedPrompts {
		prompts.AddPrompt(p.Title, p.Message)
	}
	if err := a.api.SetAssistantThreadsSuggestedPromptsContext(ctx, prompts); err != nil {
		return fmt.Errorf("suggest prompts in slack channel %s: %w", g.channel, err)
	}
	return nil
}
