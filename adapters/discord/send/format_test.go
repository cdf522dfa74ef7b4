package send_test

import (
	"flag"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"parley/adapters/adaptertest"
	"parley/adapters/discord"
)

// pieces are syntax that Discord, CommonMark or Parley read, and texts that fill a post.
var pieces = []string{
	"word ", "||", "|", "`", "```\n", "``", "**", "*", "_", "~~", "\n", "\n\n", "  ", "| a | b |\n", "  | c | d |\n", "|---|---|\n", "#### ", "-# ", ">>> ", "> ", "- ",
	"@here", "@every", "<@201>", "<@!999>", "[", "](https://x.y)", "[https://x.y](https://x.y) ", "![a](https://x.y)", "\\", "é", "👩\u200d👩\u200d👧", "🇵🇹",
	"~~~\n", "````sh\n", "  ", "<br>", "<a href=\"https://x.y/a_b\">l</a>", "H<sub>2</sub>", "</details>\n", "__b c__", "__", "+ ", "1) ", "https://x.y/a_b_c?d=e ",
	"https://x.y/" + strings.Repeat("long_", 40), "「", "」", "字", strings.Repeat("word ", 90), strings.Repeat("x", 450), strings.Repeat("| row | 1 |\n", 60), strings.Repeat("a line\n", 70),
}

// TestAnyPreviewOnlyGrows: the preview of a text begins with the preview of each shorter text, and a full
// post never changes. No post is longer than Discord allows.
func TestAnyPreviewOnlyGrows(t *testing.T) {
	a, mentions := discord.New("acme", discord.DefaultConfig()), []string{"<@201>"}
	rapid.Check(t, func(t *rapid.T) {
		source := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 30).Draw(t, "source"), "")
		before, ended := "", false
		for n := 0; n <= len(source)+1; n += 1 + n%17 {
			n = min(n, len(source)+1)
			shown, _, full := a.FormatPartial(source[:min(n, len(source))], mentions, n > len(source))
			if !strings.HasPrefix(shown, before) || ended && (!full || shown != before) {
				t.Fatalf("after %d bytes of %q: %q became %q", n, source, before, shown)
			}
			before, ended = shown, full
		}
		for _, post := range a.Format(source, mentions) {
			if utf8.RuneCountInString(post) > 2000 || strings.Contains(post, "<@!999>") {
				t.Fatalf("%q has the post %q", source, post)
			}
		}
	})
}

var update = flag.Bool("update", false, "overwrite the golden files")

// TestAnswers compares texts of answers with a golden file.
func TestAnswers(t *testing.T) {
	a := discord.New("acme", discord.DefaultConfig())
	adaptertest.Answers(t, "discord", *update, func(text string) []string { return a.Format(text, nil) })
}

// TestEveryWordOnce checks that posts lose and repeat no word of an answer.
func TestEveryWordOnce(t *testing.T) {
	a := discord.New("acme", discord.DefaultConfig())
	adaptertest.Words(t, func(text string) []string { return a.Format(text, nil) })
}

// TestDialect checks the table in the README.
func TestDialect(t *testing.T) {
	a := discord.New("acme", discord.DefaultConfig())
	adaptertest.Dialect(t, "../README.md", *update, func(text string) []string { return a.Format(text, nil) })
}
