package markdown_test

import (
	"regexp"
	"strings"
	"testing"

	"parley/adapters/markdown"
)

const outside = ` rel="nofollow noreferrer noopener" target="_blank"`

// TestHTML compares the HTML of each kind of text.
func TestHTML(t *testing.T) {
	for source, want := range map[string]string{
		"":                                       "",
		"# Hi\n\na *b* **c** ~~d~~ `e<f`":        "<h1>Hi</h1>\n<p>a <em>b</em> <strong>c</strong> <del>d</del> <code>e&lt;f</code></p>",
		"one\ntwo":                               "<p>one<br>\ntwo</p>",
		"[l](https://x.y/a?b=c&d \"t\")":         `<p><a href="https://x.y/a?b=c&amp;d"` + outside + `>l</a></p>`,
		"https://x.y and a@b.c":                  `<p><a href="https://x.y"` + outside + `>https://x.y</a> and <a href="mailto:a@b.c" rel="nofollow noreferrer">a@b.c</a></p>`,
		"```go title\nif a < b {}\n```":          "<pre><code class=\"language-go\">if a &lt; b {}\n</code></pre>",
		"| a | b |\n|:--|--:|\n| 1 | 2 |":        "<table>\n<thead>\n<tr>\n<th align=\"left\">a</th>\n<th align=\"right\">b</th>\n</tr>\n</thead>\n<tbody>\n<tr>\n<td align=\"left\">1</td>\n<td align=\"right\">2</td>\n</tr>\n</tbody>\n</table>",
		"3. a\n   - b":                           "<ol start=\"3\">\n<li>a\n<ul>\n<li>b</li>\n</ul>\n</li>\n</ol>",
		"> q\n\n---":                             "<blockquote>\n<p>q</p>\n</blockquote>\n<hr>",
		"![cat](https://x.y/c.png)":              `<p><a href="https://x.y/c.png" data-image="https://x.y/c.png"` + outside + `>cat</a></p>`,
		"![](https://x.y/c.png)":                 `<p><a href="https://x.y/c.png" data-image="https://x.y/c.png"` + outside + `>https://x.y/c.png</a></p>`,
		"[![badge](https://x.y/b)](https://l.l)": `<p><a href="https://l.l"` + outside + `>badge</a></p>`,
	} {
		if got := markdown.HTML(source); got != want {
			t.Errorf("%q:\n%s\nwant\n%s", source, got, want)
		}
	}
}

// hostile are texts of an agent that would act on the page that shows them.
var hostile = []string{
	"<script>alert(1)</script>", "a <img src=x onerror=alert(1)> b", "<!-- x --><b onclick=alert(1)>c</b>", "<svg/onload=alert(1)>", "<iframe src=https://x.y>",
	"[a](javascript:alert(1))", "[a](JaVaScRiPt:alert(1))", "[a](&#106;avascript:alert(1))", "[a](java\tscript:alert(1))", "[a](data:text/html;base64,AAAA)", "[a](//x.y)", "[a](/api/v1/tickets)", "[a](https:/api/v1/tickets)", "![a](http:x)", "<https:/x.y>", "[a](vbscript:x)",
	"![a](javascript:alert(1))", "![a](data:image/svg+xml;base64,AAAA)", "![a](https://x.y/\"onerror=alert(1))", "![a\" onerror=\"alert(1)](https://x.y)", "![<script>](https://x.y)",
	"```html\" onclick=\"alert(1)\n</code></pre><script>alert(1)</script>\n```", "```x\n</code></pre><script>\n", "`</code><script>`", "<https://x.y/\"onclick=alert(1)>", "<javascript:alert(1)>",
	"| <script> |\n|---|\n| </table><script>alert(1)</script> |", "&lt;script&gt;alert(1)&lt;/script&gt;", "<style>*{display:none}</style>", "<form action=https://x.y><input>", "<a href=https://x.y target=_self>",
	"[a](https://x.y 'b\" onclick=\"alert(1)')", "<math><mtext></p><script>", "<noscript><p title=\"</noscript><script>", "\x00<scr\x00ipt>", "<scr<script>ipt>", "[a](https://x.y\u202e)",
}

// The parts of the HTML that HTML may return.
var (
	element = regexp.MustCompile(`^/?(?:p|br|hr|h[1-6]|em|strong|del|code|pre|blockquote|ul|ol|li|table|thead|tbody|tr|th|td|a)((?: [a-z-]+="[^"<>]*")*)>`)
	setting = regexp.MustCompile(`^ (?:(?:href="(?:https?://|mailto:)|data-image="https?://)[^"]*|class="language-[\w+#.-]+|align="(?:left|right|center)|start="-?\d+|rel="nofollow noreferrer(?: noopener)?|target="_blank)"`)
)

// checkHTML checks that the HTML of a text has only known elements and attributes.
func checkHTML(t *testing.T, source string) {
	t.Helper()
	got := markdown.HTML(source)
	for i, piece := range strings.Split(got, "<") {
		if i == 0 {
			continue
		}
		parts := element.FindStringSubmatch(piece)
		if parts == nil {
			t.Fatalf("%q has the element <%s in\n%s", source, piece, got)
		}
		for settings := parts[1]; settings != ""; {
			one := setting.FindString(settings)
			if one == "" {
				t.Fatalf("%q has the attributes %s in\n%s", source, settings, got)
			}
			settings = settings[len(one):]
		}
	}
}

// TestHTMLOfHostileTexts checks that no text brings an element or an attribute of its own.
func TestHTMLOfHostileTexts(t *testing.T) {
	for _, source := range hostile {
		for _, around := range []string{"%", "a %b", "> - %", "| % |\n|-|\n| % |", "**%**", "[%](https://x.y)", "\n\n%\n\n# %"} {
			checkHTML(t, strings.ReplaceAll(around, "%", source))
		}
	}
}

// FuzzHTML checks the HTML of all texts.
func FuzzHTML(f *testing.F) {
	for _, source := range hostile {
		f.Add(source)
	}
	f.Fuzz(func(t *testing.T, source string) {
		if len(source) < 10_000 {
			checkHTML(t, source)
		}
	})
}
