package slacktest_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/slack-go/slack"

	"parley/adapters/slack/slacktest"
)

func markdown(text string) slack.MsgOption {
	return slack.MsgOptionBlocks(slack.NewMarkdownBlock("", text))
}

func section(text string) slack.MsgOption {
	return slack.MsgOptionBlocks(slack.NewSectionBlock(slack.NewTextBlockObject("mrkdwn", text, false, false), nil, nil))
}

func TestShownContent(t *testing.T) {
	for name, c := range map[string]struct {
		options []slack.MsgOption
		shown   string
	}{
		"text":              {[]slack.MsgOption{slack.MsgOptionText("plain", false)}, "plain"},
		"markdown block":    {[]slack.MsgOption{slack.MsgOptionText("fallback", false), markdown("# one\n\ntwo")}, "# one\n\ntwo"},
		"markdown_text":     {[]slack.MsgOption{slack.MsgOptionMarkdownText("**bold**")}, "**bold**"},
		"two blocks":        {[]slack.MsgOption{markdown("one"), markdown("two")}, "one\n\ntwo"},
		"a long text":       {[]slack.MsgOption{slack.MsgOptionMarkdownText(strings.Repeat("é", 12_000))}, strings.Repeat("é", 12_000)},
		"the longest block": {[]slack.MsgOption{markdown(strings.Repeat("é", 12_000))}, strings.Repeat("é", 12_000)},
		"a long section":    {[]slack.MsgOption{slack.MsgOptionText("x", false), section(strings.Repeat("é", 3_000))}, "x"},
		"a bare section":    {[]slack.MsgOption{slack.MsgOptionText("x", false), slack.MsgOptionBlocks(slack.NewSectionBlock(nil, []*slack.TextBlockObject{slack.NewTextBlockObject("mrkdwn", "f", false, false)}, nil))}, "x"},
		"many blocks":       {slices.Repeat([]slack.MsgOption{markdown("x")}, 50), strings.TrimSuffix(strings.Repeat("x\n\n", 50), "\n\n")},
		"a reply":           {[]slack.MsgOption{slack.MsgOptionText("reply", false), under("1600000000.000001")}, "reply"},
	} {
		t.Run(name, func(t *testing.T) {
			server, client := start(t, slacktest.Options{})
			_, ts, err := client.PostMessageContext(t.Context(), channel, c.options...)
			if err != nil {
				t.Fatal(err)
			}
			if got := message(t, server, ts).Shown(); got != c.shown {
				t.Errorf("shown %q, want %q", got, c.shown)
			}
		})
	}
}

func TestRefusedContent(t *testing.T) {
	long := strings.Repeat("é", 12_001)
	server, client := start(t, slacktest.Options{})
	_, old := start(t, slacktest.Options{NoMarkdownBlocks: true})
	raw := func(blocks string) slack.MsgOption {
		return slack.UnsafeMsgOptionEndpoint(server.URL()+"chat.postMessage", func(v url.Values) { v.Set("blocks", blocks) })
	}
	for name, c := range map[string]struct {
		client  *slack.Client
		options []slack.MsgOption
		code    string
	}{
		"nothing":             {client, nil, "no_text"},
		"both kinds":          {client, []slack.MsgOption{slack.MsgOptionText("a", false), slack.MsgOptionMarkdownText("b")}, "markdown_text_conflict"},
		"long text":           {client, []slack.MsgOption{slack.MsgOptionText(strings.Repeat("é", 40_001), false)}, "msg_too_long"},
		"long markdown_text":  {client, []slack.MsgOption{slack.MsgOptionMarkdownText(long)}, "msg_too_long"},
		"long markdown block": {client, []slack.MsgOption{markdown(long)}, "msg_blocks_too_long"},
		"long blocks":         {client, []slack.MsgOption{markdown(long[:12_002]), markdown(long[:12_002])}, "msg_blocks_too_long"},
		"long section":        {client, []slack.MsgOption{section(strings.Repeat("é", 3_001))}, "invalid_blocks"},
		"many paragraphs":     {client, []slack.MsgOption{markdown(strings.Repeat("a\n\n# b\nc\n```\n\n\n```\n", 13))}, "invalid_blocks"},
		"empty block":         {client, []slack.MsgOption{markdown("")}, "invalid_blocks"},
		"unknown block":       {client, []slack.MsgOption{raw(`[{"type":"poem","text":"x"}]`)}, "invalid_blocks"},
		"no text in a block":  {client, []slack.MsgOption{raw(`[{"type":"markdown","text":{"x":1}}]`)}, "invalid_blocks"},
		"no list":             {client, []slack.MsgOption{raw(`{"type":"markdown"}`)}, "invalid_blocks_format"},
		"many blocks":         {client, slices.Repeat([]slack.MsgOption{markdown("x")}, 51), "msg_blocks_too_many"},
		"an older slack":      {old, []slack.MsgOption{slack.MsgOptionText("a", false), markdown("a")}, "invalid_blocks"},
		"metadata":            {client, []slack.MsgOption{slack.MsgOptionText("a", false), slack.MsgOptionMetadata(slack.SlackMetadata{EventType: "x"})}, "invalid_metadata_format"},
	} {
		_, _, err := c.client.PostMessageContext(t.Context(), channel, c.options...)
		wantCode(t, name, err, c.code)
	}
	if posts := server.Posts(); len(posts) != 0 {
		t.Errorf("a refused call took effect: %+v", posts)
	}
}
