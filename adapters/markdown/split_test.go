package markdown_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"parley/adapters/markdown"
)

// limit is short, so that short texts are split.
const limit = 64

func fill(word string, n int) string { return strings.TrimSpace(strings.Repeat(word+" ", n)) }

func TestPlacesWherePostsEnd(t *testing.T) {
	a40, b40 := strings.Repeat("a", 40), strings.Repeat("b", 40)
	for name, c := range map[string]struct {
		source string
		want   []string
	}{
		"an empty line before a newline":          {a40 + "\n\nshort\nline " + b40, []string{a40, "short\nline " + b40}},
		"a newline before a space":                {a40 + "\nshort line " + b40, []string{a40, "short line " + b40}},
		"a space":                                 {fill("abcdefg", 9), []string{fill("abcdefg", 8), "abcdefg"}},
		"a late space before an early empty line": {"x\n\n" + a40 + " " + b40, []string{"x\n\n" + a40, b40}},
		"inside a long word":                      {strings.Repeat("x", 70), []string{strings.Repeat("x", 64), strings.Repeat("x", 6)}},
		"a long word, between graphemes":          {strings.Repeat("x", 60) + strings.Repeat("👩‍👩‍👧", 2), []string{strings.Repeat("x", 60), strings.Repeat("👩‍👩‍👧", 2)}},
		"not inside an entity":                    {strings.Repeat("x", 62) + "&y", []string{strings.Repeat("x", 62), "&amp;y"}},
		"not inside a code span":                  {a40 + " `" + fill("code", 7) + "`", []string{a40, "`" + fill("code", 7) + "`"}},
		"not inside a link":                       {a40 + " [some label](https://x.y/abcdefghijk)", []string{a40, "<https://x.y/abcdefghijk|some label>"}},
		"a code span longer than a post": {"`" + fill("abcdefg", 10) + "`",
			[]string{"`" + fill("abcdefg", 7) + "`", "`" + fill("abcdefg", 3) + "`"}},
		"a link longer than a post": {"[l](https://x.y/" + strings.Repeat("z", 80) + ")",
			[]string{"l", "(https://x.y/" + strings.Repeat("z", 51), strings.Repeat("z", 29) + ")"}},
		"emphasis, closed and opened again": {"**" + fill("abcdefg", 10) + "**",
			[]string{"*" + fill("abcdefg", 7) + "*", "*" + fill("abcdefg", 3) + "*"}},
		"a fence, closed and opened again": {"```\n" + a40 + "\n\n  " + b40 + "\n```",
			[]string{"```\n" + a40 + "\n```", "```\n  " + b40 + "\n```"}},
		"a quote, in each post":        {"> " + fill("abcdefg", 10), []string{"> " + fill("abcdefg", 7), "> " + fill("abcdefg", 3)}},
		"a list item, with one bullet": {"- " + fill("abcdefg", 10), []string{"• " + fill("abcdefg", 7), "    " + fill("abcdefg", 3)}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, markdown.Format(c.source, markdown.Slack, limit)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestTablesAreDivided: each post of a table begins with its head, and ends behind a row.
func TestTablesAreDivided(t *testing.T) {
	source := "|name|n|\n|-|-|\n" + strings.Repeat("|abcdefgh|1|\n", 8) + "\nend"
	for dialect, want := range map[markdown.Dialect][]string{
		markdown.Plain: {
			"name     | n\n---------+--\n" + strings.TrimSpace(strings.Repeat("abcdefgh | 1\n", 7)),
			"name     | n\n---------+--\nabcdefgh | 1\n\nend",
		},
		markdown.Slack: {
			"```\nname     | n\n---------+--\n" + strings.Repeat("abcdefgh | 1\n", 7) + "```",
			"```\nname     | n\n---------+--\nabcdefgh | 1\n```\n\nend",
		},
	} {
		if diff := cmp.Diff(want, markdown.Format(source, dialect, 128)); diff != "" {
			t.Error(diff)
		}
	}
}

func TestTheLimitCountsUTF16(t *testing.T) {
	got := markdown.Format(strings.Repeat("😀", 40), markdown.Plain, limit)
	if diff := cmp.Diff([]string{strings.Repeat("😀", 32), strings.Repeat("😀", 8)}, got); diff != "" {
		t.Error(diff)
	}
}

// TestMarksThatFillAPost checks that Format ends and keeps the text although no letter fits
// between the marks.
func TestMarksThatFillAPost(t *testing.T) {
	for _, source := range []string{
		strings.Repeat("> ", 90) + "deep",
		strings.Repeat("- ", 90) + "deep",
		"```\n" + strings.Repeat("\n", 200) + "deep\n```",
		"x" + strings.Repeat("\u0301", 300) + "deep",
	} {
		got := markdown.Format(source, markdown.Slack, limit)
		if !strings.Contains(strings.Join(got, ""), "deep") {
			t.Errorf("%q", got)
		}
		checkParts(t, markdown.Slack, limit, got)
	}
}

// slackToken matches the only tokens that a post may contain.
var slackToken = regexp.MustCompile(`^<(@[UW][A-Z0-9]{1,40}|(?i:https?://|mailto:)[^<>|\s]+(\|[^<>\n]+)?)>`)

var quoteMark = regexp.MustCompile(`(?m)^(> )+`)

type reporter interface {
	Helper()
	Errorf(format string, args ...any)
}

// checkParts checks the limit, the fences and the tokens of posts.
func checkParts(t reporter, dialect markdown.Dialect, limit int, parts []string) {
	t.Helper()
	for _, part := range parts {
		if n := len(utf16.Encode([]rune(part))); n > limit {
			t.Errorf("%d units, more than %d: %q", n, limit, part)
		}
		if strings.TrimSpace(part) == "" {
			t.Errorf("empty post %q", part)
		}
		if dialect != markdown.Plain && strings.Count(part, "```")%2 != 0 {
			t.Errorf("a fence is left open: %q", part)
		}
		if dialect == markdown.Slack {
			checkTokens(t, part)
		}
	}
}

// checkTokens checks that Slack finds only allowed tokens in a post.
func checkTokens(t reporter, part string) {
	t.Helper()
	for rest := quoteMark.ReplaceAllString(part, ""); ; {
		at := strings.IndexAny(rest, "<>&")
		if at < 0 {
			return
		}
		rest = rest[at:]
		switch {
		case slackToken.MatchString(rest):
			rest = rest[len(slackToken.FindString(rest)):]
		case strings.HasPrefix(rest, "&amp;"), strings.HasPrefix(rest, "&lt;"), strings.HasPrefix(rest, "&gt;"):
			rest = rest[1:]
		case strings.HasPrefix(rest, "> "): // a quote in a list
			rest = rest[2:]
		default:
			t.Errorf("slack would read %.20q as a token, in %q", rest, part)
			return
		}
	}
}

// nasty are pieces of text and syntax that make almost any construct when joined.
var nasty = []string{
	"a", "bc", "Z", "9", " ", "  ", "\n", "\n\n", "\t", "*", "**", "_", "~~", "`", "``", "```", "```\n", "~~~\n", "#", "# ", "> ", "- ", "1. ",
	"[", "](", "](https://x.y/", ")", "![", "<", ">", "<!channel>", "<@U1", "<@U0BOT>", "<#C1|x>", "<!subteam^S1>", "<https://x.y|", "<b>", "<!--", "-->", "&", "&amp;", "&lt;", "&#60;",
	"\\", "|", "|-|-|\n", "---\n", "===\n", "https://x.y/z", "www.x.y", "a@b.cd", "javascript:", "é", "e\u0301", "👩‍👩‍👧", "\u200b", "日本", "loooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooong",
}

var dialects = rapid.SampledFrom([]markdown.Dialect{markdown.Slack, markdown.Plain})

func TestAnyTextIsSplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		source := strings.Join(rapid.SliceOfN(rapid.SampledFrom(nasty), 0, 60).Draw(t, "source"), "")
		dialect := dialects.Draw(t, "dialect")
		limit := rapid.IntRange(64, 120).Draw(t, "limit")
		checkParts(t, dialect, limit, markdown.Format(source, dialect, limit))
	})
}

// letters returns the letters of a text. Marks contain no letters.
func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) {
			return r
		}
		return -1
	}, s)
}

func TestNoLetterIsLostOrMoved(t *testing.T) {
	pieces := []string{"a", "bc", "déf", "日本", "gggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggg",
		" ", " ", "\n", "\n\n", "*", "**", "_", "~~", "`", "``", "# ", "> ", "- ", "1. ", "    ", "<", ">", "<i>", "\\", "!", "(", ")", "---\n", "[x]", "[x]: "}
	rapid.Check(t, func(t *rapid.T) {
		source := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 80).Draw(t, "source"), "")
		if strings.Contains(source, "```") || strings.Contains(source, "~~~") {
			t.Skip("posts do not show the language of a fence")
		}
		dialect := dialects.Draw(t, "dialect")
		limit := rapid.IntRange(64, 120).Draw(t, "limit")
		parts := markdown.Format(source, dialect, limit)
		got := strings.Join(parts, "")
		if dialect == markdown.Slack {
			got = strings.NewReplacer("&lt;", "", "&gt;", "", "&amp;", "").Replace(got)
		}
		if letters(got) != letters(source) {
			t.Fatalf("%q became %q", source, parts)
		}
	})
}

// TestCodeIsKept splits fences and joins the parts again.
func TestCodeIsKept(t *testing.T) {
	line := rapid.StringMatching(`[ ]{0,4}[a-z(){}"]{1,50}`)
	rapid.Check(t, func(t *rapid.T) {
		code := strings.Join(rapid.SliceOfN(line, 1, 12).Draw(t, "code"), "\n")
		parts := markdown.Format("```\n"+code+"\n```", markdown.Slack, 80)
		for i, part := range parts {
			body, opened := strings.CutPrefix(part, "```\n")
			body, closed := strings.CutSuffix(body, "\n```")
			if !opened || !closed {
				t.Fatalf("no fence: %q", part)
			}
			parts[i] = body
		}
		if got := strings.Join(parts, "\n"); got != code {
			t.Fatalf("%q became %q", code, got)
		}
	})
}

// FuzzUncut proves that a text which fits into one post reads the same whether it is cut
// between its words or not.
func FuzzUncut(f *testing.F) {
	for _, r := range rows {
		f.Add(r.source)
	}
	f.Fuzz(func(t *testing.T, source string) {
		for _, dialect := range []markdown.Dialect{markdown.Slack, markdown.Plain} {
			cut := markdown.FormatCut(source, dialect, 1<<20)
			if got := markdown.Format(source, dialect, 1<<20); len(cut) > 0 && !slices.Equal(got, cut) {
				t.Fatalf("%q became %q, and %q if it is cut", source, got, cut)
			}
		}
	})
}

func FuzzFormat(f *testing.F) {
	for _, r := range rows {
		f.Add(r.source)
	}
	f.Fuzz(func(t *testing.T, source string) {
		for _, dialect := range []markdown.Dialect{markdown.Slack, markdown.Plain} {
			checkParts(t, dialect, limit, markdown.Format(source, dialect, limit))
		}
	})
}

func BenchmarkFormat(b *testing.B) {
	for name, source := range map[string]string{
		"short": "<@U0BOT> hello **you**",
		"long":  strings.Repeat("Some *words* with `code` and a [link](https://x.y).\n\n- one\n- two\n\n```go\nx := a < b\n```\n\n", 200),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(source)))
			for b.Loop() {
				markdown.Format(source, markdown.Slack, 3900)
			}
		})
	}
}

// TestNestingIsBounded checks that deeply nested quotes and lists do not become a text of another
// order of size, and that the text stays.
func TestNestingIsBounded(t *testing.T) {
	for _, marker := range []string{">", "- ", "1. "} {
		source := strings.Repeat(marker, 1000) + "begin\n" + strings.Repeat("b\n", 500)
		got := strings.Join(markdown.Format(source, markdown.Plain, 10_000), "")
		if len(got) > 8*len(source) || !strings.Contains(got, "begin") || strings.Count(got, "b") != 501 {
			t.Errorf("%q: %d bytes become %d", marker, len(source), len(got))
		}
	}
}
