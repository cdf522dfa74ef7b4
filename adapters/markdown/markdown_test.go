package markdown_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/adapters/markdown"
)

// row is a text and its post in each dialect.
type row struct{ name, source, slack, plain string }

var rows = []row{
	{"plain words", "hello  world, how's it?", "hello  world, how's it?", "hello  world, how's it?"},
	{"emphasis", "**b** *i* __b__ _i_ ~~s~~ ***bi***",
		"*b* _i_ *b* _i_ ~s~ _*bi*_", "b i b i s bi"},
	{"emphasis inside a word", "foo**bar**baz", "foo\u200b*bar*\u200bbaz", "foobarbaz"},
	{"emphasis over two lines", "**one\ntwo**", "*one*\n*two*", "one\ntwo"},
	{"name with underscores", "__init__.py and __main__, __Note__ and __b__", "*init*.py and *main*, *Note* and *b*", "__init__.py and __main__, Note and b"},
	{"product", "2*x*y and *so* (*x*), a*b", "2\u200b_x_\u200by and _so_ (_x_), a*b", "2*x*y and so (x), a*b"},
	{"powers", "2**10 = 1024 and x**8 = 256, **so** 这是**重点**内容", "2\u200b*10 = 1024 and x*\u200b8 = 256, *so* 这是\u200b*重点*\u200b内容", "2**10 = 1024 and x**8 = 256, so 这是重点内容"},
	{"paths", "src/*.go and lib/*/x.go, *or* this", "src/_.go and lib/_/x.go, _or_ this", "src/*.go and lib/*/x.go, or this"},
	{"single tildes", "10~15 or 20~30, ~about~ 5 and ~~not 6~~", "10~15 or 20~30, ~about~ 5 and ~not 6~", "10~15 or 20~30, ~about~ 5 and not 6"},
	{"formula", `$$\int_0^1 x\,dx$$, $x^{2}\;$ and \( y\_1 \); \*5 and $6`, "$$\\int_0^1 x,dx$$, $x^{2};$ and ( y_1 ); *5 and $6",
		`$$\int_0^1 x\,dx$$, $x^{2}\;$ and \( y\_1 \); *5 and $6`},
	{"snake case", "a_snake_case", "a_snake_case", "a_snake_case"},
	{"escapes", `\*not\* 2 &lt; 3 &amp;amp; AT&T`, "*not* 2 &lt; 3 &amp;amp; AT&amp;T", "*not* 2 < 3 &amp; AT&T"},
	{"heading", "# Title **x**\ntext", "*Title x*\n\ntext", "Title x\n\ntext"},
	{"deep heading", "#### Deep", "*Deep*", "Deep"},
	{"code span", "run `a < b`", "run `a &lt; b`", "run a < b"},
	{"code span with a backtick", "``a`b``", "a`b", "a`b"},
	{"fence", "```go\nif a < b {\n\n\tx()\n}\n```", "```\nif a &lt; b {\n\n\tx()\n}\n```", "if a < b {\n\n\tx()\n}"},
	{"fence with words after it", "```see this\nx\n```", "```\nsee this\nx\n```", "see this\nx"},
	{"fence inside a fence", "~~~\n```\nx\n```\n~~~", "```\n`\u200b`\u200b`\nx\n`\u200b`\u200b`\n```", "```\nx\n```"},
	{"literal fence", "\\`\\`\\` x", "`\u200b`\u200b` x", "``` x"},
	{"bullets", "- a\n- b\n  - c\n    more\n- d", "• a\n• b\n    • c\n        more\n• d",
		"• a\n• b\n    • c\n        more\n• d"},
	{"numbers", "3. a\n4. b\n   1. c", "3. a\n4. b\n    1. c", "3. a\n4. b\n    1. c"},
	{"loose list", "- a\n\n- b", "• a\n\n• b", "• a\n\n• b"},
	{"quote", "> a\n> b\n>\n> c\n\nd", "> a\n> b\n> c\n\nd", "> a\n> b\n> c\n\nd"},
	{"link", "[the **docs**](https://x.y/a?b=1&c=2 \"title\")", "<https://x.y/a?b=1&amp;c=2|the docs>", "the docs (https://x.y/a?b=1&c=2)"},
	{"link that shows itself", "[https://x.y](https://x.y)", "<https://x.y>", "https://x.y"},
	{"link with a bar", "[a|b>](<https://x.y/p|q>)", "<https://x.y/p%7Cq|a|b&gt;>", "a|b> (https://x.y/p%7Cq)"},
	{"mail link", "[write](mailto:a@x.y)", "<mailto:a@x.y|write>", "write (mailto:a@x.y)"},
	{"odd scheme", "[go](javascript:alert(1)) [f](file:///x)", "go (javascript:alert(1)) f (file:///x)", "go (javascript:alert(1)) f (file:///x)"},
	{"odd scheme in brackets", "<slack://x>", "&lt;slack://x&gt;", "<slack://x>"},
	{"relative link", "[a](b.md)", "a (b.md)", "a (b.md)"},
	{"image without a text", "![](https://x.y/cat.png)", "<https://x.y/cat.png>", "https://x.y/cat.png"},
	{"image", "![cat](https://x.y/cat.png)", "<https://x.y/cat.png|cat>", "cat (https://x.y/cat.png)"},
	{"bare link", "see https://x.y/_a_?b&c now", "see https://x.y/_a_?b&amp;c now", "see https://x.y/_a_?b&c now"},
	{"bare link before a bracket", "(https://x.y/a)", "(<https://x.y/a>)", "(https://x.y/a)"},
	{"hard break", "a  \nb\\\nc", "a\nb\nc", "a\nb\nc"},
	{"html", "a <b>x</b> <!-- c -->", "a &lt;b&gt;x&lt;/b&gt; &lt;!-- c --&gt;", "a <b>x</b> <!-- c -->"},
	{"html block", "<div>\nx\n</div>", "&lt;div&gt;\nx\n&lt;/div&gt;", "<div>\nx\n</div>"},
	{"table", "| a | wide b |\n|--:|---|\n| long *c* | d |", "```\n     a | wide b\n-------+-------\nlong c | d\n```", "     a | wide b\n-------+-------\nlong c | d"},
	{"table of links", "| a |\n|---|\n| [b *c*](https://x.y/b?c&amp;d) ![](https://x.y/e) ![f](https://x.y/f) |\n| [![g](https://x.y/g)](https://x.y/h) https://x.y/i |",
		"```\na\n" + strings.Repeat("-", 55) + "\nb c (https://x.y/b?c&amp;d) https://x.y/e f (https://x.y/f)\ng (https://x.y/h) https://x.y/i\n```",
		"a\n" + strings.Repeat("-", 55) + "\nb c (https://x.y/b?c&d) https://x.y/e f (https://x.y/f)\ng (https://x.y/h) https://x.y/i"},
	{"code in a list", "1. Do this:\n   ```py\n   def f():\n       return 1\n\n   print(f())\n   ```\n2. Next",
		"1. Do this:\n```\ndef f():\n    return 1\n\nprint(f())\n```\n2. Next",
		"1. Do this:\n    def f():\n        return 1\n\n    print(f())\n2. Next"},
	{"code that begins a list", "- ```\n  a\n    b\n  ```", "```\na\n  b\n```", "•\n    a\n      b"},
	{"code in a quote", "> ```sh\n> ls\n> cd x\n> ```", "```\nls\ncd x\n```", "> ls\n> cd x"},
	{"table in a quote in a list", "- x\n\n  > |a|bb|\n  > |-|-|\n  > |c|d|", "• x\n\n```\na | bb\n--+---\nc | d\n```", "• x\n\n    > a | bb\n    > --+---\n    > c | d"},
	{"emphasis beside Japanese punctuation", "これは**「重要」**です。**太字**文字。使用**“引号”**强调。*「斜」*と~~『消』~~も_中_。",
		"これは‸*「重要」*‸です。‸*太字*‸文字。使用‸*“引号”*‸强调。‸_「斜」_‸と‸~『消』~‸も_中_。",
		"これは「重要」です。太字文字。使用“引号”强调。「斜」と『消』も_中_。"},
	{"emphasis beside Korean", "**\"중요\"**한 것, **(가)**나", "*\"중요\"*‸한 것, *(가)*‸나", "\"중요\"한 것, (가)나"},
	{"rule", "a\n\n---\n\nb", "a\n\n———\n\nb", "a\n\n———\n\nb"},
	{"text like a definition", "[Bob]: hello", "[Bob]: hello", "[Bob]: hello"},
	{"syntax alone", "#", "#", "#"},
	{"line ends", "a\r\nb\rc", "a\nb\nc", "a\nb\nc"},
	{"invalid bytes", "a\x00\xffb", "a\uFFFD\uFFFDb", "a\uFFFD\uFFFDb"},
}

func TestDialects(t *testing.T) {
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			for dialect, want := range map[markdown.Dialect]string{markdown.Slack: strings.ReplaceAll(r.slack, "‸", "\u200b"), markdown.Plain: r.plain} {
				if diff := cmp.Diff([]string{want}, markdown.Format(r.source, dialect, 4000)); diff != "" {
					t.Errorf("dialect %d:\n%s", dialect, diff)
				}
			}
		})
	}
}

// TestTokensOfSlack checks that an agent can mention a user and use no other token.
func TestTokensOfSlack(t *testing.T) {
	for source, want := range map[string]string{
		"<@U0BOT> hello":                 "<@U0BOT> hello",
		"**<@W123ABC>**":                 "*<@W123ABC>*",
		"\\<@U0BOT>":                     "&lt;@U0BOT&gt;",
		"&lt;@U0BOT&gt;":                 "&lt;@U0BOT&gt;",
		"&#60;!channel&#62;":             "&lt;!channel&gt;",
		"`<@U0BOT>`":                     "`&lt;@U0BOT&gt;`",
		"```\n<!here> <@U0BOT>\n```":     "```\n&lt;!here&gt; &lt;@U0BOT&gt;\n```",
		"<!channel> hey":                 "&lt;!channel&gt; hey",
		"hey <!here|here> <!everyone>":   "hey &lt;!here|here&gt; &lt;!everyone&gt;",
		"<!subteam^S123|@ops>":           "&lt;!subteam^S123|@ops&gt;",
		"<#C123|general>":                "&lt;#C123|general&gt;",
		"<@B123> <@U1|bob> <@u1> <@U1 >": "&lt;@B123&gt; &lt;@U1|bob&gt; &lt;@u1&gt; &lt;@U1 &gt;",
		"[<!channel>](https://x.y)":      "<https://x.y|&lt;!channel&gt;>",
		"[x](https://x.y/|<!channel>)":   "<https://x.y/%7C%3C!channel%3E|x>",
		"![<@U1>](slack://open)":         "&lt;@U1&gt; (slack://open)",
	} {
		got := strings.Join(markdown.Format(source, markdown.Slack, 4000), "¶")
		if got != want {
			t.Errorf("%q became %q, want %q", source, got, want)
		}
	}
}

func TestEmptyTextHasNoPosts(t *testing.T) {
	for _, source := range []string{"", " \n\t\r\n ", "\u00a0\u2028"} {
		for _, dialect := range []markdown.Dialect{markdown.Slack, markdown.Plain} {
			if posts := markdown.Format(source, dialect, 4000); len(posts) != 0 {
				t.Errorf("%q became %q", source, posts)
			}
		}
	}
}
