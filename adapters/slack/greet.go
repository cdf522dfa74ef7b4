package slack

import (
	"bytes"
	"context"
	"fmt"
	"sync"

	"github.com/slack-go/slack"

	"parley/adapters"
	"parley/ingest/event"
)

const (
	// maxPrompts is the number of prompts that Slack shows in a thread.
	// https://docs.slack.dev/reference/methods/assistant.threads.setSuggestedPrompts
	maxPrompts = 4
	// greeters is the number of assistant threads that are greeted at the same time.
	greeters = 4
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

// greetingInbox returns an inbox that also requests a greeting of each assistant thread
// whose start it accepts. If no prompts are configured, it returns the inbox itself.
func (a *Adapter) greetingInbox(inbox adapters.Inbox) adapters.Inbox {
	if len(a.config.SuggestedPrompts) == 0 {
		return inbox
	}
	return greetingInbox{inbox, a}
}

type greetingInbox struct {
	adapters.Inbox
	adapter *Adapter
}

// Accept implements adapters.Inbox. It does not wait for the greeting.
func (i greetingInbox) Accept(ctx context.Context, envelope event.Envelope) (adapters.Receipt, error) {
	receipt, err := i.Inbox.Accept(ctx, envelope)
	if err != nil || receipt.Duplicate || !bytes.Contains(envelope.Body, []byte("assistant_thread_started")) {
		return receipt, err
	}
	var self event.Self
	if known := i.adapter.self.Load(); known != nil {
		self = *known
	}
	if p := payloadOf(envelope); p.assistant != nil && p.assistant.started && p.earlyResult(self) == nil {
		select {
		case i.adapter.greetings <- assistantGreeting{p.channel, p.ts}:
		default:
		}
	}
	return receipt, nil
}

// startGreeting greets the requested threads until ctx ends or stop is called.
func (a *Adapter) startGreeting(ctx context.Context, link adapters.Link) (stop func()) {
	if len(a.config.SuggestedPrompts) == 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var greeting sync.WaitGroup
	for range greeters {
		greeting.Go(func() { a.greetAll(ctx, link) })
	}
	return func() {
		cancel()
		greeting.Wait()
	}
}

func (a *Adapter) greetAll(ctx context.Context, link adapters.Link) {
	for {
		select {
		case <-ctx.Done():
			return
		case g := <-a.greetings:
			err := catchPanic(func() error { return a.greet(ctx, g, link.State) })
			if err != nil && ctx.Err() == nil {
				link.Log.Warn("assistant thread not greeted", "channel", g.channel, "err", err)
			}
		}
	}
}

// greet shows the configured prompts in an assistant thread, at most once. The state
// holds each conversation's newest greeted thread, so an older thread gets no greeting
// any more.
func (a *Adapter) greet(ctx context.Context, g assistantGreeting, state adapters.State) error {
	ctx, cancel := context.WithTimeout(ctx, a.config.Timeout)
	defer cancel()
	isNew := false
	err := state.Update(ctx, "greeted/"+g.channel, func(newest string) string {
		isNew = newest == "" || sentAt(newest).Before(sentAt(g.thread))
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
