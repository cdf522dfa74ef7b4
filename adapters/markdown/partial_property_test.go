package markdown_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
	"pgregory.net/rapid"

	"parley/adapters/markdown"
)

const partialLimit = 1024

// httpLink matches the beginning of a link that may stay one.
const httpLink = `https?://`

var (
	// liveToken matches a token that Slack acts on, anywhere in a text.
	liveToken = regexp.MustCompile(`(?i)(?:<|&lt;?|&#0*60;?|&#x0*3c;?)\\?(?:` + liveName + `|(?:javascript|slack|tel|data|file):|[a-z][a-z0-9+.-]*://)`)
	// liveMention matches one in a text without character references and escapes.
	liveMention = regexp.MustCompile(`(?i)<(?:` + liveName + `)`)
	// safeToken matches the tokens that may keep their effect.
	safeToken = regexp.MustCompile(`(?i)^(?:(?-i:<@U0BOT>|<#C1\|general>)|[^:]+` + httpLink + `$|<` + httpLink + `)`)
)

// liveName matches the rest of a mention or of a command.
const liveName = `!(?:channel|here|everyone|group|subteam|date)\b|(?:[!@#]|@[!&])[a-z0-9]+[|>]`

// checkTokensOff checks that no token of a post has an effect but the allowed ones.
func checkTokensOff(t reporter, post string) {
	t.Helper()
	for text, live := range map[string]*regexp.Regexp{post: liveToken, " " + markdown.Unescape(post): liveMention} {
		for _, at := range live.FindAllStringIndex(text, -1) {
			if !safeToken.MatchString(text[at[0]:]) && !safeToken.MatchString(text[at[0]:at[1]]) {
				t.Errorf("%q has an effect in %q", text[at[0]:at[1]], post)
			}
		}
	}
}

var fullParser = goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough)).Parser()

// noHTMLParser parses no HTML, because no chat has it.
var noHTMLParser = func() parser.Parser {
	var blocks []util.PrioritizedValue
	for _, b := range parser.DefaultBlockParsers() {
		if b.Priority != 900 { // the priority of HTML blocks
			blocks = append(blocks, b)
		}
	}
	return parser.NewParser(parser.WithBlockParsers(blocks...), parser.WithInlineParsers(parser.DefaultInlineParsers()...),
		parser.WithParagraphTransformers(parser.DefaultParagraphTransformers()...))
}()

// checkPost checks the limit, the text, the tokens and the links of a post.
func checkPost(t reporter, post string, limit int) {
	t.Helper()
	if n := len(utf16.Encode([]rune(post))); n > limit {
		t.Errorf("%d units, more than %d", n, limit)
	}
	if strings.TrimSpace(post) == "" || !utf8.ValidString(post) || strings.ContainsAny(post, "\x00\r") {
		t.Errorf("the post %q", post)
	}
	checkTokensOff(t, post)
	for _, p := range []parser.Parser{fullParser, noHTMLParser} {
		checkLinks(t, p, post)
	}
}

// effectiveScheme matches the beginning of an address that has an effect. A browser
// ignores some control characters. An empty address has no effect, and the scheme of
// std::move has no handler.
var effectiveScheme = regexp.MustCompile(`^[\x00-\x20]*([a-z][a-z0-9+.\x00-\x20-]*):[^:]`)

// checkLinks parses a post and checks the scheme of every link. No post has an image.
func checkLinks(t reporter, p parser.Parser, post string) {
	t.Helper()
	source := []byte(post)
	_ = ast.Walk(p.Parse(text.NewReader(source)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		to := ""
		switch n := n.(type) {
		case *ast.Link:
			to = string(n.Destination)
		case *ast.Image:
			t.Errorf("an image in %q", post)
		}
		to = strings.ToLower(string(util.UnescapePunctuations(util.ResolveEntityNames(util.ResolveNumericReferences([]byte(to))))))
		scheme := effectiveScheme.FindStringSubmatch(to)
		if entering && scheme != nil && !strings.HasPrefix(to, "http://") && !strings.HasPrefix(to, "https://") && scheme[1] != "mailto" {
			t.Errorf("a link to %q in %q", to, post)
		}
		return ast.WalkContinue, nil
	})
}

// checkBalanced checks that text after a post is outside of the post's fences.
func checkBalanced(t reporter, post string) {
	t.Helper()
	source := []byte(post + "\n\nbehind")
	last := noHTMLParser.Parse(text.NewReader(source)).LastChild()
	if _, ok := last.(*ast.Paragraph); !ok || string(last.Lines().Value(source)) != "behind" {
		t.Errorf("a fence is left open: %q", post)
	}
}

// bare returns a text without zero-width spaces, without bytes that no post shows, and
// without the difference between images and links, and without the labels of mentions.
func bare(s string) string {
	s = openImage.ReplaceAllString(strings.ReplaceAll(markdown.Clean(s), "\u200b", ""), "[")
	return labelledBot.ReplaceAllString(strings.ReplaceAll(s, "[image](", "[]("), "<@U0BOT>")
}

// labelledBot matches a mention whose label is dropped.
var labelledBot = regexp.MustCompile(`<@U0BOT\|[^<>|\n]*>`)

var openImage = regexp.MustCompile(`!+\[`)

// checkPosts formats a text as posts and checks each one. Without the added fence lines,
// the posts must be the text, so that nothing is lost.
func checkPosts(t reporter, source string, balanced bool) {
	t.Helper()
	how := markdown.PartialOptions{Limit: partialLimit, Mentions: allowed, Done: true}
	var got strings.Builder
	added, rest, divided := "", source, false
	for n, full := 0, true; full; n++ {
		var shown, next, body, closing, reopen string
		var used int
		shown, next, _ = markdown.FormatPartial(rest, how)
		body, closing, reopen, used, full = markdown.PartialParts(rest, how)
		if shown != "" {
			checkPost(t, shown, partialLimit)
			if balanced {
				checkBalanced(t, shown)
			}
		}
		if strings.TrimSpace(body) != "" && shown != body+closing {
			t.Errorf("%q is %q and %q", shown, body, closing)
		}
		divided = divided || full && closing != "" // white space at the end of marks is dropped
		kept, ok := strings.CutPrefix(bare(body), bare(added))
		if !ok && shown != "" {
			t.Errorf("%q does not begin with %q", body, added)
		}
		got.WriteString(kept)
		if full && (next != reopen+markdown.Clean(rest)[used:] || used <= len(added) || n > len(source)) {
			t.Errorf("no progress: %d bytes of %q, then %q", used, rest, next)
			return
		}
		added, rest = reopen, next
	}
	lost, ok := strings.CutPrefix(bare(source), got.String())
	if divided || longSpace.MatchString(source) {
		lost, ok = strings.CutPrefix(strings.Join(strings.Fields(bare(source)), ""), strings.Join(strings.Fields(got.String()), ""))
	}
	if !ok || strings.TrimSpace(lost) != "" {
		t.Errorf("%q became %q", source, got.String())
	}
}

// longSpace matches white space that FormatPartial may drop.
var longSpace = regexp.MustCompile(`[\s\v\x{85}\p{Z}]{100,}`)

// partialNasty are pieces of syntax, and partialLong are pieces that fill a post.
var (
	partialNasty = append([]string{"\r\n", "\r", "\x00", "\xff", "\xe2\x82", "!here>", "!channel>", "&lt;", "&#x3c;", "<\\!here>", "&#33;here>", "](slack://x)", "](\n> data:x)", "]: tel:1\n",
		"[x]", "<#C1|general>", "<!date^1^x|y>", "<std::x>", "<@!77>", "<@!", "</x:7>", "**", "*", "_", "~~", "`", "``", "**bold words** ", "a *b* ", "\n- ", "\n> ", "\n\n", "é", "👩\u200d👩", "\u200d👧", "](std::x)", "](x: y)", "~~~ go\n", "````\n", "  ```\n", "> ```\n", "- ```\n", "10. ", "\u0600", "\u0301", "<@", "C1|", "U0BOT>"}, nasty...)
	partialLong = []string{strings.Repeat("word ", 40), strings.Repeat("x", 300), strings.Repeat("😀", 60), strings.Repeat("line\n", 30), strings.Repeat("\n", 70), strings.Repeat("> ", 60), strings.Repeat("    ", 60)}
)

func drawText(t *rapid.T) string {
	pieces := rapid.SampledFrom(append(append([]string{}, partialNasty...), partialLong...))
	return strings.Join(rapid.SliceOfN(pieces, 0, 60).Draw(t, "source"), "")
}

func TestAnyTextAsPartialPosts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkPosts(t, drawText(t), false) })
}

// TestAnyPartialPostOnlyGrows cuts a text at several places.
func TestAnyPartialPostOnlyGrows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		source := drawText(t)
		how := markdown.PartialOptions{Limit: partialLimit, Mentions: allowed}
		before, ended := "", false
		cuts := rapid.SliceOfN(rapid.IntRange(0, len(source)), 0, 20).Draw(t, "cuts")
		for n := range len(source) + 2 {
			how.Done = n > len(source)
			n = min(n, len(source))
			drawn := how.Done || slices.Contains(cuts, n)
			if !drawn && n%37 != 0 {
				continue
			}
			shown, rest, full := markdown.FormatPartial(source[:n], how)
			if !strings.HasPrefix(shown, before) || ended && (!full || shown != before) || !full && rest != source[:n] {
				t.Fatalf("after %d bytes of %q: %q became %q", n, source, before, shown)
			}
			if drawn && shown != "" {
				checkPost(t, shown, partialLimit)
			}
			before, ended = shown, full
		}
	})
}

// TestPartialFencesAreBalanced builds texts like those of agents.
func TestPartialFencesAreBalanced(t *testing.T) {
	block := rapid.Custom(func(t *rapid.T) string {
		in := rapid.SampledFrom([]string{"", "", "", "> ", "- ", "1. ", "- - ", "> - ", "- > ", "   ", "100. "}).Draw(t, "in")
		sign := rapid.SampledFrom([]string{"```", "~~~", "````"}).Draw(t, "sign")
		info := rapid.SampledFrom([]string{"", "go", "c++ title=\"x y\""}).Draw(t, "info")
		lines := rapid.SliceOfN(rapid.SampledFrom([]string{"code", "  x := 1", "", "``", strings.Repeat("y", 200), strings.Repeat("y ", 600), "# no title", "- no item"}), 0, 12).Draw(t, "lines")
		var later strings.Builder
		for _, r := range in {
			if r == '>' {
				later.WriteRune('>')
			} else {
				later.WriteByte(' ')
			}
		}
		code := in + sign + info + "\n"
		for _, line := range append(lines, sign) {
			code += later.String() + line + "\n"
		}
		prose := rapid.SampledFrom([]string{"Some words.\n\n", "A `span` and\na line.\n\n", "# Title\n", "- an item\n- another\n\n", "", "> a quote\n\n"}).Draw(t, "prose")
		return prose + code
	})
	rapid.Check(t, func(t *rapid.T) {
		source := strings.Join(rapid.SliceOfN(block, 1, 8).Draw(t, "source"), "")
		checkPosts(t, source, true)
	})
}

func FuzzFormatPartial(f *testing.F) {
	for _, row := range partialRows {
		f.Add(row[0], 10)
	}
	f.Add(strings.Repeat("word ", 200)+"```go\n"+strings.Repeat("x := a < b\n", 200)+"```\n<!channel>", 2100)
	f.Add("> "+strings.Repeat("[a](https://x.y) ", 80)+"\n> ```\n> "+strings.Repeat("y", 1500), 1400)
	f.Fuzz(func(t *testing.T, source string, cut int) {
		checkPosts(t, source, false)
		how := markdown.PartialOptions{Limit: partialLimit, Mentions: allowed}
		cut = max(0, min(cut, len(source)))
		before, _, ended := markdown.FormatPartial(source[:cut], how)
		after, _, full := markdown.FormatPartial(source, how)
		how.Done = true
		done, _, _ := markdown.FormatPartial(source, how)
		if !strings.HasPrefix(after, before) || !strings.HasPrefix(done, after) || ended && (!full || before != after) {
			t.Errorf("%q of %q: %q, then %q, then %q", source[:cut], source, before, after, done)
		}
		if before != "" {
			checkPost(t, before, partialLimit)
		}
	})
}

func BenchmarkFormatPartial(b *testing.B) {
	source := strings.Repeat("Some *words* with `code`, <@U0BOT> and a [link](https://x.y) — né.\n\n- one\n- two\n\n```go\nx := a < b\n```\n\n", 400)[:40_000]
	b.ReportAllocs()
	b.SetBytes(int64(len(source)))
	for b.Loop() {
		posts(source, 11_500)
	}
}
