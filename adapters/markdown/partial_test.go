package markdown_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/adapters/markdown"
)

// allowed are the mentions that an agent may use in these tests.
var allowed = []string{"<@U0BOT>", "<#C1|general>"}

// whole formats a whole text as one post.
func whole(text string) string {
	shown, _, _ := markdown.FormatPartial(text, markdown.PartialOptions{Limit: 100_000, Mentions: allowed, Done: true})
	return shown
}

// partialRows are pairs of a text and its post. A ‸ is a zero-width space. If the post
// is empty, the text does not change; "-" means that there is no post.
var partialRows = [][2]string{
	{"これは**「重要」**です。**太字**文字。使用**“引号”**强调。~~『消』~~も", "これは**‸「重要」‸**です。**太字**文字。使用**‸“引号”‸**强调。~~『消』‸~~も"},
	{"使用**“引号”强调", "使用**‸“引号”强调"},
	{"hello  **world**, _how_'s ~~it~~?", ""},
	{"# Title\n\n- a\n  - b\n\n1. c\n\n> d\n\n| a | b |\n|---|--:|\n| c | d |\n\n---\n", ""},
	{"2 < 3 && x<y > z &amp; &lt; &gt; AT&T", ""},
	{"a <b>x</b> <br/> <!-- c --> <!DOCTYPE html> <?php <![CDATA[x]]>", "a <b>x</b> <br/> <!-- c --> <!DOCTYPE html> <?php <!‸[CDATA[x]]>"},

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
	{"<@U0BOT|x> <@U0BOT >", "<@U0BOT> <‸@U0BOT >"},
	{"<@U0BOT|olivia>, <@U0OTHER|bob> <@U0BOT|<!here>> <@U0BOT|", "<@U0BOT>, <‸@U0OTHER|bob> <‸@U0BOT|<‸!here>> <‸@U0BOT|"},
	{"`<@U0BOT> <@U1>` ` <@U0BOT>", "`<@U0BOT> <‸@U1>` ` <@U0BOT>"},
	{"```\n<@U0BOT> <@U1>\n```\n<@U0BOT>", "```\n<@U0BOT> <‸@U1>\n```\n<@U0BOT>"},
	{"List<@NonNull String> #<@ivar x", ""},
	{"<@\\!K01> <@\\&K01>", "<‸@\\!K01> <‸@\\&K01>"},
	{"<@!201> <@&7> <@!201|x> <@\\!201> <@!20&#49;> &lt;@!201> `<@!201>`", "<‸@!201> <‸@&7> <‸@!201|x> <‸@\\!201> <‸@!20&#49;> &lt;‸@!201> `<‸@!201>`"},
	{"<@!201 <@!2 3> <@!x", "<‸@!201 <‸@!2 3> <@!x"},
	{"</ask:77> </ask more:77> <id:browse> </b> <t:1790000000:R> <:sprout:6> <a:hop:7>", "<‸/ask:77> <‸/ask more:77> <‸id:browse> </b> <t:1790000000:R> <:sprout:6> <a:hop:7>"},

	{"&lt;!channel&gt; &#60;!here> &#x3C;!here> &#X0003c;@U1> &LT;!here> &lt!here>",
		"&lt;‸!channel&gt; &#60;‸!here> &#x3C;‸!here> &#X0003c;‸@U1> &LT;‸!here> &lt‸!here>"},
	{"&lt;@U0BOT&gt; &lt;div&gt; &lt;!-- &#600;!x &ltr;!", "&lt;‸@U0BOT&gt; &lt;div&gt; &lt;!-- &#600;!x &ltr;!"},
	{"<&#33;channel> <\\!channel> <&commat;U1> <!ch&#97;nnel> &lt;\\@U1>", "<‸&#33;channel> <‸\\!channel> <‸&commat;U1> <‸!ch&#97;nnel> &lt;‸\\@U1>"},
	{"Vec<&str> <\\w+> (?<!\\.)x (?<!\\w)y", ""},
	{"<!here\\|x> <!foo\\> <!foo&gt;", "<‸!here\\|x> <‸!foo\\> <‸!foo&gt;"},

	{"<https://x.y> <HTTP://x.y|z> <mailto:a@b.c> <a@b.c>", ""},
	{"<slack://open> <tel:1> <javascript:x|y> <std::string>", "<‸slack://open> <‸tel:1> <‸javascript:x|y> <std::string>"},
	{"`<std::string>` `<xs:element>` `<slack://x>` `<tel:1>`", "`<std::string>` `<xs:element>` `<‸slack://x>` `<‸tel:1>`"},
	{"```\nmap<std::string> <ns:a> <javascript:x> m[k](std::move(x))\n```\n", "```\nmap<std::string> <ns:a> <‸javascript:x> m[k](std::move(x))\n```\n"},
	{"&lt;javascript:x&gt;", "&lt;‸javascript:x&gt;"},

	{"[a](https://x.y) [b](http://x.y/z.png \"t\") [c](mailto:a@b.c) [d]( <https://x.y> )", ""},
	{"![b](http://x.y/z.png \"t\") and ![](http://x.y) or!![c d](x)", "[b](http://x.y/z.png \"t\") and [image](http://x.y) or!‸[c d](x)"},
	{"![a [b] c](http://x.y) ![`]`](http://x.y) ![a\nb](http://x.y) ![a][b] ![a] !", "!‸[a [b] c](http://x.y) !‸[`]`](http://x.y) !‸[a\nb](http://x.y) !‸[a][b] !‸[a] !"},
	{"\\![a](http://x.y) \\\\![a](http://x.y)\n```\nif !ok[0] || ![]int{1}[0] {\n```\n", "\\![a](http://x.y) \\\\[a](http://x.y)\n```\nif !ok[0] || ![]int{1}[0] {\n```\n"},
	{"[a](b.md) [c](#d) [e](/f?g:h) a[1](x, y)", ""},
	{"[a](javascript:alert(1)) ![b](slack://x) [c]( \n data:x) [d](<file:///e>)", "[a]‸(javascript:alert(1)) [b]‸(slack://x) [c]‸( \n data:x) [d]‸(<‸file:///e>)"},
	{"[a](java&#115;cript:x) [b](javascript\\:x) [c](< javascript:x>) [d](java&Tab;script:x) [e](http:x)",
		"[a]‸(java&#115;cript:x) [b]‸(javascript\\:x) [c]‸(< javascript:x>) [d]‸(java&Tab;script:x) [e]‸(http:x)"},
	{"[1]: https://x.y\n[2]: <HTTPS://x.y> 'z'\n", ""},
	{"[1]: javascript:x\n> [2]:\n> slack://x\n", "[1]‸: javascript:x\n> [2]‸:\n> slack://x\n"},
	{"[a](< b c>) [d](&#106;avascript:x)", "[a]‸(< b c>) [d]‸(&#106;avascript:x)"},
	{"f[a](:x) f[1](name: x) [](std::string s) [&](int& x) list[int]: x[1]: ns::y", ""},
	{"- [Bob]: hello", "- [Bob]‸: hello"},
	{"```\n[key: string]: int\n```\n[Bob]: hello", "```\n[key: string]: int\n```\n[Bob]‸: hello"},
	{"[Bob]:", ""},
	{"x[Bob]: hello", ""},

	{"a\r\nb\rc\r", "a\nb\nc\n"},
	{"a\x00\xffb\xe2\x82", "a\uFFFD\uFFFDb\uFFFD"},
	{"é e\u0301 👩‍👩‍👧 日本 \u0600<!here>", "é e\u0301 👩‍👩‍👧 日本 \u0600<‸!here>"},
	{"```go\nopen", "```go\nopen\n```"},
	{"> ```\n> open", "> ```\n> open\n> ```"},
	{"- ~~~~\n  open\n", "- ~~~~\n  open\n  ~~~~"},
	{"> ```\n> a\nb", "> ```\n> a\nb"},
	{"- ```\n  a\nb", "- ```\n  a\nb\n  ```"}, // the end of the list is not seen
	{"``` a`b\nc", "``` a`b\nc"},
	{"```py\n    ```\nx\n```\n", ""},
	{strings.Repeat("> ", 101) + "```\nb", ""},
	{"```" + strings.Repeat("x", 300) + "\nb", ""},
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

func TestFormatPartial(t *testing.T) {
	for _, row := range partialRows {
		if diff := cmp.Diff(want(row), whole(row[0])); diff != "" {
			t.Errorf("%q (-want +got):\n%s", row[0], diff)
		}
	}
}

// TestPartialPostsOnlyGrow cuts each text after every byte. A stream can append text but
// cannot change it.
func TestPartialPostsOnlyGrow(t *testing.T) {
	for _, row := range partialRows {
		for _, before := range []string{"", strings.Repeat("word ", 204)} { // the second one nearly fills a post
			checkCuts(t, before+row[0], max(0, len(before)-9), markdown.PartialOptions{Limit: 1024, Mentions: allowed})
		}
	}
}

// checkCuts formats every prefix of a text from a length on. The first post must begin
// with the post of the next shorter prefix, and stay the same after it is full.
func checkCuts(t reporter, text string, from int, how markdown.PartialOptions) {
	t.Helper()
	before, ended := "", false
	for n := from; n <= len(text)+1; n++ { // the last one is the whole text, done
		how.Done = n > len(text)
		shown, _, full := markdown.FormatPartial(text[:min(n, len(text))], how)
		if !strings.HasPrefix(shown, before) || ended && (!full || shown != before) {
			t.Errorf("after %d bytes of %q: %q became %q", n, text, before, shown)
			return
		}
		checkTokensOff(t, shown)
		before, ended = shown, full
	}
}

// posts returns all posts of a text.
func posts(text string, limit int) (posts []string) {
	for full := true; full; {
		var shown string
		shown, text, full = markdown.FormatPartial(text, markdown.PartialOptions{Limit: limit, Mentions: allowed, Done: true})
		if shown != "" {
			posts = append(posts, shown)
		}
	}
	return posts
}

func TestThePlaceWhereAPartialPostEnds(t *testing.T) {
	a := func(n int) string { return strings.Repeat("a", n) }
	for name, c := range map[string]struct {
		source string
		want   []string
	}{
		"a paragraph's end":                 {a(800) + "\n\n" + a(100) + "\n" + a(200), []string{a(800) + "\n\n", a(100) + "\n" + a(200)}},
		"after empty lines":                 {a(800) + "\n\n \n" + a(300), []string{a(800) + "\n\n \n", a(300)}},
		"no early paragraph's end":          {a(700) + "\n\n" + a(210) + "\n" + a(200), []string{a(700) + "\n\n" + a(210) + "\n", a(200)}},
		"before a fence":                    {a(800) + "\n```\n" + a(300) + "\n```", []string{a(800) + "\n", "```\n" + a(300) + "\n```"}},
		"after a fence":                     {"```\n" + a(764) + "\n```\n" + a(300), []string{"```\n" + a(764) + "\n```\n", a(300)}},
		"a line's end before a word's end":  {a(800) + " b\n" + a(120) + "\n" + a(200), []string{a(800) + " b\n" + a(120) + "\n", a(200)}},
		"a word's end":                      {a(970) + " " + a(100), []string{a(970) + " ", a(100)}},
		"the limit":                         {a(2000), []string{a(1024), a(976)}},
		"the limit, before a surrogate":     {a(1023) + "👩" + a(10), []string{a(1023), "👩" + a(10)}},
		"white space at the limit":          {a(1020) + "      " + a(10), []string{a(1020) + "    ", "  " + a(10)}},
		"no post of white space":            {a(1020) + "          \n\n", []string{a(1020) + "    "}},
		"much white space at the beginning": {strings.Repeat("\n", 2000) + a(10), []string{a(10)}},
		"a line's end in a fence": {"x\n~~~ go  \n" + a(700) + "\n\n" + a(300) + "\n~~~\ny",
			[]string{"x\n~~~ go  \n" + a(700) + "\n\n~~~", "~~~go\n" + a(300) + "\n~~~\ny"}},
		"the limit in a fence":        {"```\n" + a(1000) + "\n```", []string{"```\n" + a(764) + "\n```", "```\n" + a(236) + "\n```"}},
		"the rest with a fence's end": {"```\n" + a(895) + "\n```\nb", []string{"```\n" + a(764) + "\n```", "```\n" + a(131) + "\n```\nb"}},
		"a long info string is not repeated": {"```" + a(100) + "\n" + a(800) + "\n" + a(100) + "\n```",
			[]string{"```" + a(100) + "\n" + a(664) + "\n```", "```\n" + a(136) + "\n" + a(100) + "\n```"}},
		"a fence in a quote": {"> ```go\n> " + a(900) + "\n> ```", []string{"> ```go\n> " + a(758) + "\n> ```", "> ```go\n> " + a(142) + "\n> ```"}},
		"a fence in an item": {"- a\n  ```go\n  " + a(900) + "\n  ```\n- b",
			[]string{"- a\n  ```go\n  " + a(754) + "\n  ```", "  ```go\n  " + a(146) + "\n  ```\n- b"}},
		"a fence deep in a list": {"- - - ```go\n      " + a(800) + "\n      " + a(300) + "\n      ```\n",
			[]string{"- - - ```go\n      " + a(750) + "\n      ```", "      ```go\n      " + a(50) + "\n      " + a(300) + "\n      ```\n"}},
	} {
		if diff := cmp.Diff(c.want, posts(c.source, 1024)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		checkCuts(t, c.source, 740, markdown.PartialOptions{Limit: 1024})
	}
}

// manyWords matches words of TestMarksAreDivided.
var manyWords = regexp.MustCompile(`word(?: word)*`)

// TestMarksAreDivided: emphasis and code that a post's end divides are closed there and opened again in
// the next post, and so are the quotes. A W means many words.
func TestMarksAreDivided(t *testing.T) {
	words := strings.TrimSpace(strings.Repeat("word ", 188))
	for _, c := range []struct {
		source string
		want   []string
	}{
		{"**W W**.", []string{"**W**", "**W**."}},
		{"*W W*", []string{"*W*", "*W*"}},
		{"_W W_", []string{"_W_", "_W_"}},
		{"~~W W~~", []string{"~~W~~", "~~W~~"}},
		{"``a ` W W``", []string{"``a ` W``", "``W``"}},
		{"***W W*** x", []string{"***W***", "***W*** x"}},
		{"**W _W_**", []string{"**W _W_**", "**_W_**"}},
		{"**_W_ W**", []string{"**_W_ W**", "**W**"}},
		{"**`W W`**", []string{"**`W`**", "**`W`**"}},
		{"***W* W**", []string{"***W* W**", "**W**"}},
		{"> **W word word word\n> W**", []string{"> **W**", "> **W**"}},
		{"- **W word word word\n  W**", []string{"- **W**", "  **W**"}},
		{"**a** `b` _c_ ~~d~~ W W", []string{"**a** `b` _c_ ~~d~~ W ", "W"}},
		{"2 * 3 ** 4 a_b_c \\**x \\`y ~z W W", []string{"2 * 3 ** 4 a_b_c \\**x \\`y ~z W ", "W"}},
		{"**a\n\n- *b\nW W", []string{"**a\n\n- *b\nW*", "*W"}},
		{"> W W", []string{"> W ", "> W"}},
		{" >> **W W**", []string{" >> **W**", " >> **W**"}},
		{"x\n> a\n> W W\ny", []string{"x\n> a\n> W ", "> W\n", "y"}},
		{"> W word word word\n> W", []string{"> W\n", "> W"}},
		{"> W word word word\n\nW", []string{"> W\n\n", "W"}},
		{"    > W W", []string{"    > W ", "W"}},
		{strings.Repeat(">", 40) + " W W", []string{strings.Repeat(">", 40) + " W ", "W"}},
		{"```\n**\n```\nW W", []string{"```\n**\n```\nW ", "W"}},
	} {
		source := strings.ReplaceAll(c.source, "W", words)
		got := posts(source, 1024)
		if n := strings.Count(strings.Join(got, ""), "word"); n != strings.Count(source, "word") {
			t.Errorf("%s has %d words", c.source, n)
		}
		for i := range got {
			got[i] = manyWords.ReplaceAllString(got[i], "W")
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.source, diff)
		}
		checkCuts(t, source[:1100], 920, markdown.PartialOptions{Limit: 1024})
	}
}

// TestWhatIsNotDivided: a mark without a text before the post's end opens in the next post, and a
// grapheme is in one post, also if a preview ends within it.
func TestWhatIsNotDivided(t *testing.T) {
	x := func(n int) string { return strings.Repeat("x", n) }
	const family = "👩\u200d👩\u200d👧\u200d👦"
	for name, c := range map[string]struct {
		source string
		want   []string
	}{
		"an empty mark":      {x(1019) + ".**" + x(100) + "**", []string{x(1019) + ".", "**" + x(100) + "**"}},
		"a family":           {x(1020) + family + "y", []string{x(1020), family + "y"}},
		"a letter and signs": {x(1023) + "e\u0301\u0323z", []string{x(1023), "e\u0301\u0323z"}},
		"a flag":             {x(1022) + "🇵🇹🇧🇷", []string{x(1022), "🇵🇹🇧🇷"}},
		"too many signs":     {x(900) + "e" + strings.Repeat("\u0301", 300), []string{x(900) + "e" + strings.Repeat("\u0301", 123), strings.Repeat("\u0301", 177)}},
	} {
		if diff := cmp.Diff(c.want, posts(c.source, 1024)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		checkCuts(t, c.source, 890, markdown.PartialOptions{Limit: 1024})
	}
}

// TestPostsEndAfterBlocks: a platform may bound the blocks of a post. A blank line, a heading and a
// code block end a block, and nothing inside a code block does.
func TestPostsEndAfterBlocks(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"paragraphs":    {"a\nb\n\nc\n\nd\n\ne", []string{"a\nb\n\nc\n\n", "d\n\ne"}},
		"headings":      {"# a\n## b\nc\n#d\n", []string{"# a\n## b\n", "c\n#d\n"}},
		"code":          {"a\n```\n\n# b\n\n```\nc\n- d\n- e\n\nf", []string{"a\n```\n\n# b\n\n```\n", "c\n- d\n- e\n\nf"}},
		"just fits":     {"a\n\nb\n\n", []string{"a\n\nb\n\n"}},
		"a table":       {"| a | b |\n|---|---|\n| c | d |\n\ne\n\nf", []string{"| a | b |\n|---|---|\n| c | d |\n\ne\n\n", "f"}},
		"a word with #": {"a\n\nb\n#c", []string{"a\n\nb\n#c"}},
	} {
		options := markdown.PartialOptions{Limit: 100_000, Blocks: 2, Done: true}
		var got []string
		for rest, full := c.text, true; full; {
			var shown string
			shown, rest, full = markdown.FormatPartial(rest, options)
			got = append(got, shown)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		options.Done = false
		for i, before := 0, ""; i <= len(c.text); i++ {
			shown, _, _ := markdown.FormatPartial(c.text[:i], options)
			if !strings.HasPrefix(shown, before) {
				t.Errorf("%s: after %d bytes %q becomes %q", name, i, before, shown)
			}
			before = shown
		}
	}
}
