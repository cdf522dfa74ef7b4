package markdown_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/adapters/markdown"
)

// the tokens that an agent was given.
func given(token string) bool { return token == "<@U0BOT>" || token == "<#C1|general>" }

func whole(text string) string {
	shown, _, _ := markdown.Grow(text, markdown.Growing{Limit: 100_000, Mention: given, Done: true})
	return shown
}

// growRows are texts and what becomes of them; a ‸ is a zero-width space. Where the
// second is empty, the text stays as it is.
var growRows = [][2]string{
	{"hello  **world**, _how_'s ~~it~~?", ""},
	{"# Title\n\n- a\n  - b\n\n1. c\n\n> d\n\n| a | b |\n|---|--:|\n| c | d |\n\n---\n", ""},
	{"2 < 3 && x<y > z &amp; &lt; &gt; AT&T", ""},
	{"a <b>x</b> <br/> <!-- c --> <!DOCTYPE html> <?php <![CDATA[x]]>", ""},

	{"<!channel> hey", "<‸!channel> hey"},
	{"hey <!here|here>, <!everyone> and <!group>", "hey <‸!here|here>, <‸!everyone> and <‸!group>"},
	{"<!CHANNEL> <!subteam^S123|@ops> <!date^1^{date}|x>", "<‸!CHANNEL> <‸!subteam^S123|@ops> <‸!date^1^{date}|x>"},
	{"<!foo> <!foo|bar> <!foo bar>", "<‸!foo> <‸!foo|bar> <!foo bar>"},
	{"<!channel", "<‸!channel"},
	{"<<!here>>", "<<‸!here>>"},
	{"`<!here>` and\n```\n<!channel>\n```\n", "`<‸!here>` and\n```\n<‸!channel>\n```\n"},
	{"```<!channel>\nx\n```", "```<‸!channel>\nx\n```"},
	{"[<!channel>](https://x.y)", "[<‸!channel>](https://x.y)"},

	{"<@U0BOT> and <#C1|general>", ""},
	{"**<@U0BOT>**, <@U0BOT>: \\<@U0BOT>", ""},
	{"<@U1> <@U1|bob> <@W1> <@B1> <#C1> <#C2|x>", "<‸@U1> <‸@U1|bob> <‸@W1> <‸@B1> <‸#C1> <‸#C2|x>"},
	{"<@U0BOT|x> <@U0BOT >", "<‸@U0BOT|x> <‸@U0BOT >"},
	{"`<@U0BOT>` <@U0BOT> ` <@U0BOT>", "`<‸@U0BOT>` <@U0BOT> ` <@U0BOT>"},
	{"```\n<@U0BOT>\n```\n<@U0BOT>", "```\n<‸@U0BOT>\n```\n<@U0BOT>"},
	{"``` <@U0BOT> ```", "``` <‸@U0BOT> ```"},
	{"\\`<@U0BOT>`", ""},
	{"List<@NonNull String> #<@ivar x", ""},

	{"&lt;!channel&gt; &#60;!here> &#x3C;!here> &#X0003c;@U1> &LT;!here> &lt!here>",
		"&lt;‸!channel&gt; &#60;‸!here> &#x3C;‸!here> &#X0003c;‸@U1> &LT;‸!here> &lt‸!here>"},
	{"&lt;@U0BOT&gt; &lt;div&gt; &lt;!-- &#600;!x &ltr;!", "&lt;‸@U0BOT&gt; &lt;div&gt; &lt;!-- &#600;!x &ltr;!"},
	{"<&#33;channel> <\\!channel> <&commat;U1> <!ch&#97;nnel> &lt;\\@U1>", "<‸&#33;channel> <‸\\!channel> <‸&commat;U1> <‸!ch&#97;nnel> &lt;‸\\@U1>"},
	{"Vec<&str> <\\w+>", ""},

	{"<https://x.y> <HTTP://x.y|z> <mailto:a@b.c> <a@b.c>", ""},
	{"<slack://open> <tel:1> <javascript:x|y> <std::string>", "<‸slack://open> <‸tel:1> <‸javascript:x|y> <‸std::string>"},
	{"`<std::string>` `<xs:element>` `<slack://x>` `<tel:1>`", "`<std::string>` `<xs:element>` `<‸slack://x>` `<‸tel:1>`"},
	{"```\nmap<std::string> <ns:a> <javascript:x> m[k](std::move(x))\n```\n", "```\nmap<std::string> <ns:a> <‸javascript:x> m[k](std::move(x))\n```\n"},
	{"&lt;javascript:x&gt;", "&lt;‸javascript:x&gt;"},

	{"[a](https://x.y) ![b](http://x.y/z.png \"t\") [c](mailto:a@b.c) [d]( <https://x.y> )", ""},
	{"[a](b.md) [c](#d) [e](/f?g:h) a[1](x, y)", ""},
	{"[a](javascript:alert(1)) ![b](slack://x) [c]( \n data:x) [d](<file:///e>)", "[a]‸(javascript:alert(1)) ![b]‸(slack://x) [c]‸( \n data:x) [d]‸(<‸file:///e>)"},
	{"[a](java&#115;cript:x) [b](javascript\\:x) [c](< javascript:x>) [d](java&Tab;script:x) [e](http:x)",
		"[a]‸(java&#115;cript:x) [b]‸(javascript\\:x) [c]‸(< javascript:x>) [d]‸(java&Tab;script:x) [e]‸(http:x)"},
	{"[1]: https://x.y\n[2]: <HTTPS://x.y> 'z'\n", ""},
	{"[1]: javascript:x\n> [2]:\n> slack://x\n", "[1]‸: javascript:x\n> [2]‸:\n> slack://x\n"},
	{"[Bob]: hello", "[Bob]‸: hello"},
	{"[Bob]:", ""},
	{"x[Bob]: hello", ""},

	{"a\r\nb\rc\r", "a\nb\nc\n"},
	{"a\x00\xffb\xe2\x82", "a\uFFFD\uFFFDb\uFFFD\uFFFD"},
	{"é e\u0301 👩‍👩‍👧 日本 \u0600<!here>", "é e\u0301 👩‍👩‍👧 日本 \u0600<‸!here>"},
	{"```go\nopen", "```go\nopen\n```"},
	{"> ```\n> open", "> ```\n> open\n> ```"},
	{"- ~~~~\n  open\n", "- ~~~~\n  open\n  ~~~~"},
	{"> ```\n> a\nb", "> ```\n> a\nb"},
	{"- ```\n  a\nb", "- ```\n  a\nb"},
	{"``` a`b\nc", "``` a`b\nc"},
	{"a\n\n    ```\nb", ""},
	{strings.Repeat("> ", 101) + "```\nb", "‸" + strings.Repeat("> ", 101) + "```\nb"},
	{"```" + strings.Repeat("x", 300) + "\nb", "‸```" + strings.Repeat("x", 300) + "\nb"},
	{" \n\t\r\n", "-"},
}

func want(row [2]string) string {
	switch row[1] {
	case "":
		return row[0]
	case "-":
		return ""
	}
	return strings.ReplaceAll(row[1], "‸", "\u200b")
}

func TestGrowLeavesWhatItMay(t *testing.T) {
	for _, row := range growRows {
		if diff := cmp.Diff(want(row), whole(row[0])); diff != "" {
			t.Errorf("%q (-want +got):\n%s", row[0], diff)
		}
	}
}

// TestGrowAtEveryCut is what streaming needs: whatever the chunks, what is shown
// only grows.
func TestGrowAtEveryCut(t *testing.T) {
	for _, row := range growRows {
		for _, before := range []string{"", strings.Repeat("word ", 204)} { // in front of the limit
			checkCuts(t, before+row[0], max(0, len(before)-9), markdown.Growing{Limit: 1024, Mention: given})
		}
	}
}

// checkCuts holds the first post of every beginning of a text, of so many bytes or
// more, against that of the next longer one, and against the whole text's.
func checkCuts(t reporter, text string, from int, how markdown.Growing) {
	t.Helper()
	before, ended := "", false
	for n := from; n <= len(text)+1; n++ {
		how.Done = n > len(text)
		shown, _, full := markdown.Grow(text[:min(n, len(text))], how)
		if !strings.HasPrefix(shown, before) || ended && (!full || shown != before) {
			t.Errorf("after %d bytes of %q: %q became %q", n, text, before, shown)
			return
		}
		before, ended = shown, full
	}
}

// posts are all the posts of a text.
func posts(text string, limit int) (posts []string) {
	for full := true; full; {
		var shown string
		shown, text, full = markdown.Grow(text, markdown.Growing{Limit: limit, Mention: given, Done: true})
		if shown != "" {
			posts = append(posts, shown)
		}
	}
	return posts
}

func TestGrowEndsWhereItHurtsLeast(t *testing.T) {
	a := func(n int) string { return strings.Repeat("a", n) }
	for name, c := range map[string]struct {
		source string
		want   []string
	}{
		"a paragraph's end":              {a(800) + "\n\n" + a(100) + "\n" + a(200), []string{a(800) + "\n\n", a(100) + "\n" + a(200)}},
		"with its empty lines":           {a(800) + "\n\n \n" + a(300), []string{a(800) + "\n\n \n", a(300)}},
		"not an early one":               {a(700) + "\n\n" + a(210) + "\n" + a(200), []string{a(700) + "\n\n" + a(210) + "\n", a(200)}},
		"before a fence":                 {a(800) + "\n```\n" + a(300) + "\n```", []string{a(800) + "\n", "```\n" + a(300) + "\n```"}},
		"behind a fence":                 {"```\n" + a(764) + "\n```\n" + a(300), []string{"```\n" + a(764) + "\n```\n", a(300)}},
		"a line's end, not a word's":     {a(800) + " b\n" + a(120) + "\n" + a(200), []string{a(800) + " b\n" + a(120) + "\n", a(200)}},
		"a word's end":                   {a(970) + " " + a(100), []string{a(970) + " ", a(100)}},
		"the limit":                      {a(2000), []string{a(1024), a(976)}},
		"the limit, between characters":  {a(1020) + "👩‍👩‍👧" + a(10), []string{a(1020), "👩‍👩‍👧" + a(10)}},
		"white space at the limit stays": {a(1020) + "      " + a(10), []string{a(1020) + "    ", "  " + a(10)}},
		"white space alone is no post":   {a(1020) + "          \n\n", []string{a(1020) + "    "}},
		"nor is a lot in front":          {strings.Repeat("\n", 2000) + a(10), []string{a(10)}},
		"a fence, closed and opened": {"x\n~~~ go  \n" + a(700) + "\n\n" + a(300) + "\n~~~\ny",
			[]string{"x\n~~~ go  \n" + a(700) + "\n\n~~~", "~~~go\n" + a(300) + "\n~~~\ny"}},
		"a fence in the middle of a line": {"```\n" + a(1000) + "\n```", []string{"```\n" + a(764) + "\n```", "```\n" + a(236) + "\n```"}},
		"not before a fence's end":        {"```\n" + a(895) + "\n```\nb", []string{"```\n" + a(764) + "\n```", "```\n" + a(131) + "\n```\nb"}},
		"a fence with too long a name": {"```" + a(100) + "\n" + a(800) + "\n" + a(100) + "\n```",
			[]string{"```" + a(100) + "\n" + a(664) + "\n```", "```\n" + a(136) + "\n" + a(100) + "\n```"}},
		"a fence in a quote": {"> ```go\n> " + a(900) + "\n> ```", []string{"> ```go\n> " + a(758) + "\n> ```", "> ```go\n> " + a(142) + "\n> ```"}},
		"a fence in an item": {"- a\n  ```go\n  " + a(900) + "\n  ```\n- b",
			[]string{"- a\n  ```go\n  " + a(754) + "\n  ```", "  ```go\n  " + a(146) + "\n  ```\n- b"}},
		"a fence deep in a list": {"- - - ```go\n      " + a(800) + "\n      " + a(300) + "\n      ```\n",
			[]string{"- - - ```go\n      " + a(750) + "\n      ```", "- -   ```go\n      " + a(50) + "\n      " + a(300) + "\n      ```\n"}},
	} {
		if diff := cmp.Diff(c.want, posts(c.source, 1024)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		checkCuts(t, c.source, 740, markdown.Growing{Limit: 1024})
	}
}

func TestGrowEndsAPostEarly(t *testing.T) {
	words := strings.Repeat("word ", 20) // 100
	text := words + "\n\n" + strings.Repeat(words+"\n", 5) + strings.Repeat(words, 20)
	for name, c := range map[string]struct {
		from int
		now  bool
		want int // bytes of the post
	}{
		"a paragraph's end, soon":   {50, false, 102},
		"the same, exactly there":   {102, false, 102},
		"a line's end, later":       {103, false, 405},
		"a word's end, at last":     {650, false, 1252},
		"now, at the word's end":    {47, true, 50},
		"now, where it has one":     {50, true, 50},
		"now, at the line's end":    {198, true, 203},
		"not without a place":       {0, false, 0},
		"now, and nothing is there": {0, true, 0},
	} {
		how := markdown.Growing{Limit: 10_000, From: c.from, Now: c.now}
		shown, rest, full := markdown.Grow(text, how)
		if full != (c.want > 0) || full && (len(shown) != c.want || shown+rest != text) {
			t.Errorf("%s: %d bytes, full %v", name, len(shown), full)
		}
		if !c.now {
			checkCuts(t, text, 0, how)
		}
	}
}

func TestGrowNowEndsWhatIsThere(t *testing.T) {
	for text, want := range map[string][2]string{
		"some words wo":          {"some ", "words wo"},
		"some <@U0":              {"some ", "<@U0"},
		"```go\nsome":            {"```go\nsome\n```", "```go\n"},
		strings.Repeat("a", 200): {strings.Repeat("a", 67), strings.Repeat("a", 133)},
	} {
		shown, rest, full := markdown.Grow(text, markdown.Growing{Limit: 2000, From: 3, Now: true, Mention: given})
		if !full || shown != want[0] || rest != want[1] {
			t.Errorf("%q: %q and %q, full %v", text, shown, rest, full)
		}
	}
}
