package markdown

import (
	"bytes"
	"net/url"
	"regexp"
	"strings"
	"sync"

	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/util"
)

// ImageAttribute is an attribute of a link that replaces an image. Its value is the image's address, http or https. A page may show the image after a click.
const ImageAttribute = "data-image"

// HTML converts a text to HTML that a page may insert as it is: it has paragraphs, headings, lists,
// quotes, tables, code and links, and neither scripts nor styles, ids or images. Markup in the text is
// text. A link leads to an absolute address of http, https or mailto, in a new window, and tells its target
// nothing of the page. An image is a link with ImageAttribute, because loading it would tell a stranger
// who reads the text. A line end in a paragraph stays one, as in chats. The language of a fence is the class language-NAME of its code.
func HTML(source string) string {
	raw := []byte(clean(source))
	document, _ := parse(raw)
	var out bytes.Buffer
	_ = htmlRenderer().Render(&out, raw, document) // a buffer takes everything
	return strings.TrimSpace(safeHTML().SanitizeReader(&out).String())
}

// htmlRenderer renders the nodes of commonMark.
var htmlRenderer = sync.OnceValue(func() renderer.Renderer {
	return renderer.NewRenderer(renderer.WithNodeRenderers(
		util.Prioritized(textAndImages{}, 100),
		util.Prioritized(html.NewRenderer(html.WithHardWraps()), 1000),
		util.Prioritized(extension.NewTableHTMLRenderer(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)), 500),
		util.Prioritized(extension.NewStrikethroughHTMLRenderer(), 500),
	))
})

// safeHTML lists the elements and attributes that HTML returns. It removes all others.
var safeHTML = sync.OnceValue(func() *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	p.AllowElements("p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "em", "strong", "del", "code", "pre", "blockquote",
		"ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td")
	p.AllowAttrs("href").OnElements("a")
	p.AllowAttrs(ImageAttribute).Matching(regexp.MustCompile(`^https?://[^\s"'<>]+$`)).OnElements("a")
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^language-[\w+#.-]{1,40}$`)).OnElements("code")
	p.AllowAttrs("align").Matching(regexp.MustCompile(`^(left|center|right)$`)).OnElements("th", "td")
	p.AllowAttrs("start").Matching(bluemonday.Integer).OnElements("ol")
	p.RequireParseableURLs(true)
	p.AllowURLSchemes("mailto")
	for _, scheme := range []string{"http", "https"} { // without a host, "https:/x" is a path of the page itself
		p.AllowURLSchemeWithCustomPolicy(scheme, func(address *url.URL) bool { return address.Host != "" })
	}
	p.RequireNoFollowOnLinks(true)
	p.RequireNoReferrerOnLinks(true)
	p.AddTargetBlankToFullyQualifiedLinks(true)
	return p
})

// textAndImages renders the nodes that HTML shows otherwise than CommonMark.
type textAndImages struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (textAndImages) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindRawHTML, rawInline)
	r.Register(ast.KindHTMLBlock, rawBlock)
	r.Register(ast.KindImage, image)
}

// rawInline writes markup inside a line as text.
func rawInline(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		segments := n.(*ast.RawHTML).Segments
		_, _ = w.Write(util.EscapeHTML(segments.Value(source)))
	}
	return ast.WalkSkipChildren, nil
}

// rawBlock writes lines of markup as text.
func rawBlock(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkSkipChildren, nil
	}
	_, _ = w.WriteString("<p>")
	_, _ = w.Write(util.EscapeHTML(n.Lines().Value(source)))
	if closing := n.(*ast.HTMLBlock).ClosureLine; closing.Len() > 0 {
		_, _ = w.Write(util.EscapeHTML(closing.Value(source)))
	}
	_, _ = w.WriteString("</p>\n")
	return ast.WalkSkipChildren, nil
}

// image writes an image as a link around its description. Inside another link, the description stands
// alone.
func image(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	for parent := n.Parent(); parent != nil; parent = parent.Parent() {
		if k := parent.Kind(); k == ast.KindLink || k == ast.KindImage {
			return ast.WalkContinue, nil
		}
	}
	if !entering {
		_, _ = w.WriteString("</a>")
		return ast.WalkContinue, nil
	}
	address := util.EscapeHTML(util.URLEscape(n.(*ast.Image).Destination, true))
	_, _ = w.WriteString(`<a href="`)
	_, _ = w.Write(address)
	_, _ = w.WriteString(`" ` + ImageAttribute + `="`)
	_, _ = w.Write(address)
	_, _ = w.WriteString(`">`)
	if !n.HasChildren() {
		_, _ = w.Write(address)
	}
	return ast.WalkContinue, nil
}
