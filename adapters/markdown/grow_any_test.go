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

const growLimit = 1024

// liveToken is what Slack acts on, wherever it stands in a text.
var liveToken = regexp.MustCompile(`(?i)(?:<|&lt;?|&#0*60;?|&#x0*3c;?)\\?(?:!(?:channel|here|everyone|group|subteam|date)\b|[!@#][a-z0-9]+[|>]|(?:javascript|slack|tel|data|file):|[a-z][a-z0-9+.-]*://)`)

var growMarkdown = goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough)).Parser()

// noTags is the same without HTML, which no chat has.
var noTags = func() parser.Parser {
	var blocks []util.PrioritizedValue
	for _, b := range parser.DefaultBlockParsers() {
		if b.Priority != 900 { // of HTML blocks
			blocks = append(blocks, b)
		}
	}
	return parser.NewParser(parser.WithBlockParsers(blocks...), parser.WithInlineParsers(parser.DefaultInlineParsers()...),
		parser.WithParagraphTransformers(parser.DefaultParagraphTransformers()...))
}()

// checkGrown holds what is true of every post.
func checkGrown(t reporter, post string, limit int) {
	t.Helper()
	if n := len(utf16.Encode([]rune(post))); n > limit {
		t.Errorf("%d units, more than %d", n, limit)
	}
	if strings.TrimSpace(post) == "" || !utf8.ValidString(post) || strings.ContainsAny(post, "\x00\r") {
		t.Errorf("the post %q", post)
	}
	for _, at := range liveToken.FindAllStringIndex(post, -1) {
		token := post[at[0]:at[1]]
		lower := strings.ToLower(token)
		if !given(token) && !strings.HasPrefix(post[at[0]:], "<#C1|general>") && !strings.Contains(lower, "<http://") && !strings.Contains(lower, "<https://") &&
			!strings.HasSuffix(lower, "http://") && !strings.HasSuffix(lower, "https://") {
			t.Errorf("%q is alive in %q", token, post)
		}
	}
	for _, p := range []parser.Parser{growMarkdown, noTags} {
		checkLinks(t, p, post)
	}
}

// isScheme is as lenient as a browser.
var isScheme = regexp.MustCompile(`^[\x00-\x20]*[a-z][a-z0-9+.\x00-\x20-]*$`)

// checkLinks parses a post: no link may lead where it may not.
func checkLinks(t reporter, p parser.Parser, post string) {
	t.Helper()
	source := []byte(post)
	_ = ast.Walk(p.Parse(text.NewReader(source)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		to := ""
		switch n := n.(type) {
		case *ast.Link:
			to = string(n.Destination)
		case *ast.Image:
			to = string(n.Destination)
		}
		to = strings.ToLower(string(util.UnescapePunctuations(util.ResolveEntityNames(util.ResolveNumericReferences([]byte(to))))))
		scheme, _, found := strings.Cut(to, ":")
		if entering && found && isScheme.MatchString(scheme) && !strings.HasPrefix(to, "http://") && !strings.HasPrefix(to, "https://") && scheme != "mailto" {
			t.Errorf("a link to %q in %q", to, post)
		}
		return ast.WalkContinue, nil
	})
}

// checkBalanced says whether what is put behind a post is outside of its fences.
func checkBalanced(t reporter, post string) {
	t.Helper()
	source := []byte(post + "\n\nbehind")
	last := noTags.Parse(text.NewReader(source)).LastChild()
	if _, ok := last.(*ast.Paragraph); !ok || string(last.Lines().Value(source)) != "behind" {
		t.Errorf("a fence is left open: %q", post)
	}
}

// bare is a text as a post shows it: Grow replaces U+0000 and bytes that are no UTF-8,
// which a line that opens a fence again still has.
func bare(s string) string {
	return strings.NewReplacer("\u200b", "", "\x00", "\ufffd").Replace(string([]rune(s)))
}

// checkGrow makes all posts of a text. Without the fence lines that were added, they
// are what would stand there without a limit.
func checkGrow(t reporter, source string, balanced bool) {
	t.Helper()
	how := markdown.Growing{Limit: growLimit, Mention: given, Done: true}
	var got strings.Builder
	added, rest := "", source
	for n := 0; ; n++ {
		body, closing, reopen, used, full := markdown.GrowParts(rest, how)
		shown, next, _ := markdown.Grow(rest, how)
		if shown != "" {
			checkGrown(t, shown, growLimit)
			if balanced {
				checkBalanced(t, shown)
			}
		}
		if strings.TrimSpace(body) != "" && shown != body+closing {
			t.Errorf("%q is %q and %q", shown, body, closing)
		}
		kept, ok := strings.CutPrefix(bare(body), bare(added))
		if !ok && shown != "" {
			t.Errorf("%q does not begin with %q", body, added)
		}
		got.WriteString(kept)
		if !full {
			got.WriteString(closing)
			break
		}
		if next != reopen+rest[used:] || used <= len(added) || n > len(source) {
			t.Errorf("no progress: %d bytes of %q, then %q", used, rest, next)
			return
		}
		added, rest = reopen, next
	}
	a, b := bare(whole(source)), bare(got.String())
	if longSpace.MatchString(source) { // which may have been dropped, so that a fence behind it opens
		unfenced := strings.NewReplacer("`", "", "~", "")
		a, b = unfenced.Replace(strings.Join(strings.Fields(a), "")), unfenced.Replace(strings.Join(strings.Fields(b), ""))
	}
	if strings.TrimSpace(a) != "" && a != b {
		t.Errorf("%q became %q", a, b)
	}
}

var longSpace = regexp.MustCompile(`[\s\p{Z}]{100,}`)

// growNasty come near to everything, put together at random; growLong bring it near
// the limit.
var (
	growNasty = append([]string{"\r\n", "\r", "\x00", "\xff", "\xe2\x82", "!here>", "!channel>", "&lt;", "&#x3c;", "<\\!here>", "&#33;here>", "](slack://x)", "](\n> data:x)", "]: tel:1\n",
		"[x]", "<#C1|general>", "<!date^1^x|y>", "<std::x>", "~~~ go\n", "````\n", "  ```\n", "> ```\n", "- ```\n", "10. ", "\u0600", "\u0301", "<@", "C1|", "U0BOT>"}, nasty...)
	growLong = []string{strings.Repeat("word ", 40), strings.Repeat("x", 300), strings.Repeat("😀", 60), strings.Repeat("line\n", 30), strings.Repeat("\n", 70), strings.Repeat("> ", 60), strings.Repeat("    ", 60)}
)

func drawText(t *rapid.T) string {
	pieces := rapid.SampledFrom(append(append([]string{}, growNasty...), growLong...))
	return strings.Join(rapid.SliceOfN(pieces, 0, 60).Draw(t, "source"), "")
}

func TestAnyTextGrowsSoundly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkGrow(t, drawText(t), false) })
}

// TestAnyTextOnlyGrows cuts a text anywhere.
func TestAnyTextOnlyGrows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		source := drawText(t)
		how := markdown.Growing{Limit: growLimit, Mention: given, From: rapid.IntRange(0, 900).Draw(t, "from")}
		before, ended := "", false
		cuts := rapid.SliceOfN(rapid.IntRange(0, len(source)), 0, 20).Draw(t, "cuts")
		for n := range len(source) + 2 {
			how.Done = n > len(source)
			n = min(n, len(source))
			if !how.Done && n%37 != 0 && !slices.Contains(cuts, n) {
				continue
			}
			shown, rest, full := markdown.Grow(source[:n], how)
			if !strings.HasPrefix(shown, before) || ended && (!full || shown != before) || !full && rest != source[:n] {
				t.Fatalf("after %d bytes of %q: %q became %q", n, source, before, shown)
			}
			before, ended = shown, full
		}
	})
}

// TestFencesAreBalanced builds texts as agents write them.
func TestFencesAreBalanced(t *testing.T) {
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
		checkGrow(t, source, true)
	})
}

func FuzzGrow(f *testing.F) {
	for _, row := range growRows {
		f.Add(row[0], 10)
	}
	f.Add(strings.Repeat("word ", 200)+"```go\n"+strings.Repeat("x := a < b\n", 200)+"```\n<!channel>", 2100)
	f.Add("> "+strings.Repeat("[a](https://x.y) ", 80)+"\n> ```\n> "+strings.Repeat("y", 1500), 1400)
	f.Fuzz(func(t *testing.T, source string, cut int) {
		checkGrow(t, source, false)
		how := markdown.Growing{Limit: growLimit, Mention: given}
		before, _, ended := markdown.Grow(source[:max(0, min(cut, len(source)))], how)
		after, _, full := markdown.Grow(source, how)
		how.Done = true
		done, _, _ := markdown.Grow(source, how)
		if !strings.HasPrefix(after, before) || !strings.HasPrefix(done, after) || ended && (!full || before != after) {
			t.Errorf("%q of %q: %q, then %q, then %q", source[:max(0, min(cut, len(source)))], source, before, after, done)
		}
	})
}

func BenchmarkGrow(b *testing.B) {
	source := strings.Repeat("Some *words* with `code`, <@U0BOT> and a [link](https://x.y) — né.\n\n- one\n- two\n\n```go\nx := a < b\n```\n\n", 400)[:40_000]
	b.ReportAllocs()
	b.SetBytes(int64(len(source)))
	for b.Loop() {
		posts(source, 11_500)
	}
}
