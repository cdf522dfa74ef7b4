package send

import (
	"context"
	"fmt"

	"github.com/slack-go/slack"

	"parley/adapters"
	"parley/adapters/slack/call"
	"parley/adapters/slack/payload"
	"parley/ingest/event"
)

const (
	// MaxPrompts is the number of prompts that Slack shows in a thread.
	// https://docs.slack.dev/reference/methods/assistant.threads.setSuggestedPrompts
	MaxPrompts = 4
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

// Greeter shows suggested prompts in new assistant threads. It is safe for concurrent use.
type Greeter struct {
	client  *call.Client
	prompts []Prompt
	waiting chan assistantThread // not yet greeted
}

// NewGreeter returns a greeter that makes its calls by a client.
func NewGreeter(client *call.Client, prompts []Prompt) *Greeter {
	return &Greeter{client: client, prompts: prompts, waiting: make(chan assistantThread, maxGreetings)}
}

// assistantThread is an assistant thread that a user has started.
type assistantThread struct{ channel, thread string }

// Request requests a greeting of the thread whose start a payload reports, if
// prompts are configured. It does not wait for the greeting.
func (g *Greeter) Request(p *payload.Payload) {
	var self event.Self
	if known := g.client.KnownSelf(); known != nil {
		self = *known
	}
	channel, thread, ok := p.StartedThread(self)
	if len(g.prompts) == 0 || !ok {
		return
	}
	select {
	case g.waiting <- assistantThread{channel, thread}:
	default:
	}
}

// Run greets the requested threads until ctx ends.
func (g *Greeter) Run(ctx context.Context, link adapters.Link) {
	for {
		select {
		case <-ctx.Done():
			return
		case started := <-g.waiting:
			if err := g.greet(ctx, started, link); err != nil && ctx.Err() == nil {
				link.Log.Warn("assistant thread not greeted", "channel", started.channel, "err", err)
			}
		}
	}
}

// greet shows the configured prompts in an assistant thread, at most once. The state
// holds each conversation's newest greeted thread, so an older thread gets no greeting
// any more.
func (g *Greeter) greet(ctx context.Context, started assistantThread, link adapters.Link) (err error) {
	defer adapters.Recover(link.Log, &err)
	ctx, cancel := context.WithTimeout(ctx, g.client.Timeout)
	defer cancel()
	isNew := false
	err = link.State.Update(ctx, "greeted/"+started.channel, func(newest string) string {
		isNew = newest == "" || payload.SentAt(newest).Before(payload.SentAt(started.thread))
		if isNew {
			return started.thread
		}
		return newest
	})
	if err != nil || !isNew {
		return err
	}
	prompts := slack.AssistantThreadsSetSuggestedPromptsParameters{ChannelID: started.channel, ThreadTS: started.thread}
	for _, p := range g.prompts {
		prompts.AddPrompt(p.Title, p.Message)
	}
	if err := g.client.API.SetAssistantThreadsSuggestedPromptsContext(ctx, prompts); err != nil {
		return fmt.Errorf("suggest prompts in slack channel %s: %w", started.channel, err)
	}
	return nil
}
