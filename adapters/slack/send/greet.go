package send

import (
	"context"
	"fmt"
	"strings"

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

// Greeter shows suggested prompts in new assistant threads, and gives each of them a title from its first question, by which people
// find it in the app's history. It is safe for concurrent use.
type Greeter struct {
	client  *call.Client
	prompts []Prompt
	waiting chan assistantThread // not yet greeted, or asked a question
}

// NewGreeter returns a greeter that makes its calls by a client.
func NewGreeter(client *call.Client, prompts []Prompt) *Greeter {
	return &Greeter{client: client, prompts: prompts, waiting: make(chan assistantThread, maxGreetings)}
}

// assistantThread is a thread that a user has started, or in which a user has asked a question. Only an assistant thread is started.
type assistantThread struct {
	channel, thread string
	question        string // empty for a start
}

// Request requests a greeting of the thread whose start a payload reports, or a title of the thread in which it asks the first
// question. It does not wait for either.
func (g *Greeter) Request(p *payload.Payload) {
	var self event.Self
	if known := g.client.KnownSelf(); known != nil {
		self = *known
	}
	of := assistantThread{}
	var ok bool
	if of.channel, of.thread, ok = p.StartedThread(self); !ok {
		of.channel, of.thread, of.question, ok = p.ThreadQuestion(self)
		ok = ok && !g.client.Refuses(titleFeature)
	}
	if !ok {
		return
	}
	select {
	case g.waiting <- of:
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
			do := g.greet
			if started.question != "" {
				do = g.title
			}
			if err := do(ctx, started, link); err != nil && ctx.Err() == nil {
				link.Log.Warn("assistant thread has no prompts or no title", "channel", started.channel, "err", err)
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
	if err != nil || !isNew || len(g.prompts) == 0 {
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

const (
	// maxTitle bounds a title, in characters. Slack's list shows about as many.
	maxTitle = 60
	// titleFeature is the key under which a refusal of titles is remembered.
	titleFeature = "titles of assistant threads"
)

// title gives an assistant thread its title, at most once: the first words of its first question. The state holds each
// conversation's newest thread that was started, and the newest one with a title, so an older thread gets none any more. An app without
// the scope gets none either.
func (g *Greeter) title(ctx context.Context, asked assistantThread, link adapters.Link) (err error) {
	defer adapters.Recover(link.Log, &err)
	ctx, cancel := context.WithTimeout(ctx, g.client.Timeout)
	defer cancel()
	started, err := link.State.Get(ctx, "greeted/"+asked.channel)
	if err != nil || started != asked.thread {
		return err
	}
	isNew := false
	err = link.State.Update(ctx, "titled/"+asked.channel, func(newest string) string {
		isNew = newest != asked.thread
		return asked.thread
	})
	if err != nil || !isNew {
		return err
	}
	err = g.client.API.SetAssistantThreadsTitleContext(ctx, slack.AssistantThreadsSetTitleParameters{
		ChannelID: asked.channel, ThreadTS: asked.thread, Title: shortened(asked.question),
	})
	switch {
	case call.IsUnavailable(err):
		g.client.Remember(titleFeature)
		link.Log.Debug("slack takes no titles of assistant threads", "channel", asked.channel, "err", err)
		return nil
	case err != nil:
		return fmt.Errorf("give a thread in slack channel %s its title: %w", asked.channel, err)
	}
	return nil
}

// shortened returns the first words of a text as a title.
func shortened(text string) string {
	short := event.Beginning(text, maxTitle)
	if len(short) == len(text) {
		return text
	}
	if at := strings.LastIndexByte(short, ' '); at > maxTitle/2 {
		short = short[:at]
	}
	return strings.TrimRight(short, " ,;:") + "…"
}
