package slacktest_test

import (
	"testing"
	"time"

	"github.com/slack-go/slack"

	"parley/adapters/slack/slacktest"
)

func setStatus(t *testing.T, client *slack.Client, text string) {
	t.Helper()
	err := client.SetAssistantThreadsStatusContext(t.Context(),
		slack.AssistantThreadsSetStatusParameters{ChannelID: channel, ThreadTS: root, Status: text})
	if err != nil {
		t.Fatal(err)
	}
}

func TestStatusEnds(t *testing.T) {
	for name, end := range map[string]func(*slack.Client, *clock){
		"by a call with no text":   func(client *slack.Client, _ *clock) { setStatus(t, client, "") },
		"by a message of ours":     func(client *slack.Client, _ *clock) { post(t, client, "done", under(root)) },
		"by the start of a stream": func(client *slack.Client, _ *clock) { begin(t, client) },
		"after its time":           func(_ *slack.Client, c *clock) { c.pass(1) },
	} {
		t.Run(name, func(t *testing.T) {
			moving := &clock{}
			server, client := start(t, moving.options())
			setStatus(t, client, "is thinking…")
			post(t, client, "in another thread", under("1600000000.000002"))
			moving.pass(2*time.Minute - 1)
			if got := server.Status(channel, root); got != "is thinking…" {
				t.Fatalf("before the end the status is %q", got)
			}
			end(client, moving)
			if got := server.Status(channel, root); got != "" {
				t.Errorf("after the end the status is %q", got)
			}
		})
	}
}

func TestTitleAndPrompts(t *testing.T) {
	server, client := start(t, slacktest.Options{})
	title := func(channel string) error {
		return client.SetAssistantThreadsTitleContext(t.Context(),
			slack.AssistantThreadsSetTitleParameters{ChannelID: channel, ThreadTS: root, Title: "Lunch"})
	}
	wantCode(t, "in a channel", title(channel), "method_not_supported_for_channel_type")
	wantCode(t, "in a direct message", title("D0ASH"), "")
	prompts := slack.AssistantThreadsSetSuggestedPromptsParameters{ChannelID: "D0ASH", ThreadTS: root, Title: "Try"}
	wantCode(t, "no prompts", client.SetAssistantThreadsSuggestedPromptsContext(t.Context(), prompts), "invalid_arguments")
	prompts.AddPrompt("Short", "make it short")
	wantCode(t, "prompts", client.SetAssistantThreadsSuggestedPromptsContext(t.Context(), prompts), "")

	for len(prompts.Prompts) < 4 {
		prompts.AddPrompt("More", "more of it")
	}
	wantCode(t, "four prompts", client.SetAssistantThreadsSuggestedPromptsContext(t.Context(), prompts), "")
	prompts.AddPrompt("Most", "all of it")
	wantCode(t, "five prompts", client.SetAssistantThreadsSuggestedPromptsContext(t.Context(), prompts), "invalid_arguments")

	heading, got := server.Prompts("D0ASH", root)
	if len(got) != 4 || got[0] != (slacktest.Prompt{Title: "Short", Message: "make it short"}) || heading != "Try" {
		t.Error(heading, got)
	}
	if got := server.Title("D0ASH", root); got != "Lunch" {
		t.Errorf("the title is %q", got)
	}
}
