package slack

import (
	"context"
	"fmt"

	"github.com/slack-go/slack"

	"parley/adapters"
	"parley/ingest/event"
)

var _ adapters.Greeter = (*Adapter)(nil)

// maxPrompts is the number of prompts that Slack shows in a thread.
// https://docs.slack.dev/reference/methods/assistant.threads.setSuggestedPrompts
const maxPrompts = 4

// Prompt is a suggestion in a new assistant thread.
type Prompt struct {
	// Title is shown to the user. Slack sends Message in the user's name if the user
	// selects the prompt.
	Title   string `yaml:"title"`
	Message string `yaml:"message"`
}

// Greet shows the configured prompts in an assistant thread. It does nothing if none
// are configured.
func (a *Adapter) Greet(ctx context.Context, thread event.ThreadKey) error {
	channel, root, err := parseThreadKey(thread)
	if err != nil || root == "" || len(a.config.SuggestedPrompts) == 0 {
		return err
	}
	prompts := slack.AssistantThreadsSetSuggestedPromptsParameters{ChannelID: channel, ThreadTS: root}
	for _, p := range a.config.SuggestedPrompts {
		prompts.AddPrompt(p.Title, p.Message)
	}
	ctx, cancel := context.WithTimeout(ctx, a.config.Timeout)
	defer cancel()
	if err := a.api.SetAssistantThreadsSuggestedPromptsContext(ctx, prompts); err != nil {
		return fmt.Errorf("suggest prompts in slack channel %s: %w", channel, err)
	}
	return nil
}
