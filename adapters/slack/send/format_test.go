package send_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/adapters/adaptertest"
	"parley/adapters/markdown"
	"parley/adapters/slack/internal/testapp"
	"parley/adapters/slack/slacktest"
)

// TestFallbackWithoutMarkdownBlocks checks that the adapter posts once, and offers no
// markdown block again for an hour.
func TestFallbackWithoutMarkdownBlocks(t *testing.T) {
	asked := 0
	server, adapter := testapp.Start(t, slacktest.Options{NoMarkdownBlocks: true, OnCall: func(c slacktest.Call) {
		if strings.Contains(c.Form.Get("blocks"), `"markdown"`) {
			asked++
		}
	}})
	now := testapp.Noon
	adapter.Client.Now = func() time.Time { return now }
	reply := testapp.Post("k1")
	reply.Text = "**b** <@U1> <\u200b!here> [x](https://x.y)"
	first, err := adapter.Send(t.Context(), reply)
	if err != nil || shown(server, first) != "*b* <@U1> &lt;\u200b!here&gt; <https://x.y|x>" {
		t.Errorf("%q, %v", shown(server, first), err)
	}
	if asked != 1 || len(server.Posts()) != 1 {
		t.Errorf("%d calls, %d posts", asked, len(server.Posts()))
	}
	for _, hour := range []struct{ later, asked int }{{59, 1}, {61, 2}} {
		now = testapp.Noon.Add(time.Duration(hour.later) * time.Minute)
		if err := adapter.Edit(t.Context(), first, reply); err != nil || asked != hour.asked {
			t.Errorf("after %d minutes: %d calls, %v", hour.later, asked, err)
		}
	}
}

// TestLongFallbackUsesSections checks sections in a post and in an edit.
func TestLongFallbackUsesSections(t *testing.T) {
	blocks := ""
	server, adapter := testapp.Start(t, slacktest.Options{NoMarkdownBlocks: true, OnCall: func(c slacktest.Call) { blocks = c.Form.Get("blocks") }})
	words := strings.TrimSpace(strings.Repeat("many words & ", 850))
	reply := testapp.Post("k1")
	reply.Text = words
	id, err := adapter.Send(t.Context(), reply)
	if err != nil {
		t.Fatal(err)
	}
	if got := sections(t, server, id); got != strings.ReplaceAll(words, "&", "&amp;") {
		t.Errorf("%d of %d bytes", len(got), len(words))
	}
	reply.Text = "short"
	if err := adapter.Edit(t.Context(), id, reply); err != nil || blocks != "[]" || sections(t, server, id) != "" || shown(server, id) != "short" {
		t.Errorf("%v: the sections remain: %q, %q", err, blocks, sections(t, server, id))
	}
	reply.Text = words
	if err := adapter.Edit(t.Context(), id, reply); err != nil || !strings.HasPrefix(sections(t, server, id), "many") {
		t.Error(err)
	}
}

func sections(t *testing.T, server *slacktest.Server, id string) string {
	t.Helper()
	channel, ts, _ := strings.Cut(id, "/")
	message, _ := server.Message(channel, ts)
	if message.Blocks == nil {
		return ""
	}
	var blocks []struct{ Text struct{ Text string } }
	if err := json.Unmarshal(message.Blocks, &blocks); err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, b := range blocks {
		texts = append(texts, b.Text.Text)
	}
	return strings.Join(texts, " ")
}

// TestNotificationTextIsTheBeginning checks that the text is mrkdwn within Slack's
// advised length.
func TestNotificationTextIsTheBeginning(t *testing.T) {
	server, adapter := testapp.Start(t, slacktest.Options{})
	reply := testapp.Post("k1")
	reply.Text = "**Hi** " + strings.Repeat("é & ", 2800)
	id, err := adapter.Send(t.Context(), reply)
	if err != nil {
		t.Fatal(err)
	}
	got := server.Posts()[0]
	if n := len([]rune(got.Text)); !strings.HasPrefix(got.Text, "*Hi* é &amp; é") || n > 4000 || n < 3000 {
		t.Errorf("%d characters: %.80q", n, got.Text)
	}
	if shown(server, id) != reply.Text {
		t.Error("the block differs from the text")
	}
}

func TestGrowAgreesWithFormat(t *testing.T) {
	_, adapter := testapp.Start(t, slacktest.Options{})
	text := strings.Repeat("Some words <@U1> and <@U2>.\n\n", 1000)
	mentions := []string{"<@U1>"}
	want := adapter.Format(text, mentions)
	var got []string
	for rest, full := text, true; full; {
		var part string
		part, rest, full = adapter.FormatPartial(rest, mentions, false)
		got = append(got, part)
	}
	if len(got) != len(want) || strings.Join(got, "|") != strings.Join(want, "|") || !strings.Contains(got[0], "<@U1> and <\u200b@U2>") {
		t.Errorf("%d and %d posts", len(got), len(want))
	}
}

// TestATextThatIsTooLongAsABlock checks that it is sent in another form, and the next one as a block.
func TestATextThatIsTooLongAsABlock(t *testing.T) {
	var blocks []string
	server, adapter := testapp.Start(t, slacktest.Options{OnCall: func(c slacktest.Call) { blocks = append(blocks, c.Form.Get("blocks")) }})
	server.Script("chat.postMessage", slacktest.Fault{Error: "msg_blocks_too_long"})
	for _, key := range []string{"k1", "k2"} {
		if _, err := adapter.Send(t.Context(), testapp.Post(key)); err != nil {
			t.Fatal(err)
		}
	}
	const markdown = `[{"type":"markdown","text":"hello"}]`
	if diff := cmp.Diff([]string{markdown, "", markdown}, blocks); diff != "" {
		t.Error(diff)
	}
}

// TestManyParagraphsAreCut: Slack refuses a message whose markdown becomes more than 50 blocks, so
// a text of 120 is sent as three posts.
func TestManyParagraphsAreCut(t *testing.T) {
	server, adapter := testapp.Start(t, slacktest.Options{})
	text := strings.Repeat("## A\nb\n\n", 60)
	posts := adapter.Format(text, nil)
	for i, part := range posts {
		reply := testapp.Post(fmt.Sprintf("k%d", i))
		reply.Text = part
		if _, err := adapter.Send(t.Context(), reply); err != nil {
			t.Fatal(err)
		}
	}
	if len(posts) != 3 || strings.Join(posts, "") != text {
		t.Errorf("%d posts", len(posts))
	}
	for _, post := range server.Posts() {
		if post.Markdown == "" {
			t.Error("a post is no markdown block")
		}
	}
}

// TestRefusedBlocksAreRemembered: only a short block shows that the workspace has no markdown blocks.
func TestRefusedBlocksAreRemembered(t *testing.T) {
	for length, remembered := range map[int]bool{900: true, 1100: false} {
		server, adapter := testapp.Start(t, slacktest.Options{})
		server.Script("chat.postMessage", slacktest.Fault{Error: "invalid_blocks"})
		for _, key := range []string{"k1", "k2"} {
			reply := testapp.Post(key)
			reply.Text = strings.Repeat("é", length)
			if _, err := adapter.Send(t.Context(), reply); err != nil {
				t.Fatal(err)
			}
		}
		if got := server.Posts()[1].Markdown == ""; got != remembered {
			t.Errorf("a refused block of %d characters: the next post is no block: %v", length, got)
		}
	}
}

var update = flag.Bool("update", false, "rewrite the golden files")

// TestAnswers compares texts of answers in both of Slack's dialects with golden files.
func TestAnswers(t *testing.T) {
	adapter := testapp.New("http://127.0.0.1:1/")
	adaptertest.Answers(t, "slack", *update, func(text string) []string { return adapter.Format(text, nil) })
	adaptertest.Answers(t, "slack-mrkdwn", *update, func(text string) []string { return markdown.Format(text, markdown.Slack, 4000) })
}

// TestEveryWordOnce checks that posts lose and repeat no word of an answer, in both of Slack's dialects.
func TestEveryWordOnce(t *testing.T) {
	adapter := testapp.New("http://127.0.0.1:1/")
	adaptertest.Words(t, func(text string) []string { return adapter.Format(text, nil) })
	adaptertest.Words(t, func(text string) []string { return markdown.Format(text, markdown.Slack, 3000) })
}

// TestDialect checks the table in the README.
func TestDialect(t *testing.T) {
	a := testapp.New("http://127.0.0.1:1/")
	adaptertest.Dialect(t, "../README.md", *update, func(text string) []string { return a.Format(text, nil) })
}
