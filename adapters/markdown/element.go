package markdown

import (
	"html"
	"regexp"
	"strings"
	"unicode/utf8"
)

// maxElement bounds an element of HTML that is read, in bytes.
const maxElement = 1024

// shown is what people see instead of an element of HTML: a link if address is not empty, else text.
type shown struct{ text, address string }

var (
	// elementTag matches the tag that begins an element which models write into CommonMark.
	elementTag = regexp.MustCompile(`(?i)^<(/?)(br|details|summary|sub|sup|kbd|a|img)((?:[\s/][^<>]*)?)>`)
	// beginsTag matches a text that may continue as such a tag.
	beginsTag = regexp.MustCompile(`(?i)^<(?:[a-z]{0,7}|/[dsb]?[a-z]{0,6}|(?:br|details|summary|sub|sup|kbd|a|img)[\s/][^<>]*|/(?:br|details|summary)[\s/][^<>]*)$`)
	// knownTag matches the tag of such an element, also the one that ends it.
	knownTag = regexp.MustCompile(`(?i)^</?(?:br|details|summary|sub|sup|kbd|a|img)[\s/>]`)
	// anyTag matches a tag.
	anyTag = regexp.MustCompile(`<[^<>]*>`)
	// attributes match attributes of tags.
	hrefAttribute = regexp.MustCompile(`(?i)\shref\s*=\s*(?:"([^"]*)"|'([^']*)')`)
	srcAttribute  = regexp.MustCompile(`(?i)\ssrc\s*=\s*(?:"([^"]*)"|'([^']*)')`)
	altAttribute  = regexp.MustCompile(`(?i)\salt\s*=\s*(?:"([^"]*)"|'([^']*)')`)
	// ordinal matches what stands raised in a text without being an exponent.
	ordinal = regexp.MustCompile(`(?i)^(?:st|nd|rd|th|tm|er|e|o|a|®|©|\*|†|\[.*\])$`)
)

// element reads an element of HTML at the beginning of a text, as models write them where CommonMark has no sign: a
// line break, a text to unfold, an index or exponent, a key, a link, an image. All other markup stays text. n is the
// length of the element; 0 if there is none. may says that more text of the line may make it one.
func element(s string) (e shown, n int, may bool) {
	head := s[:min(len(s), maxElement)]
	if end := strings.IndexByte(head, '\n'); end >= 0 {
		head = head[:end]
	}
	open := len(head) == len(s) // more text of the line may follow
	m := elementTag.FindStringSubmatch(head)
	if m == nil {
		return e, 0, open && beginsTag.MatchString(head)
	}
	name, closes, tag := strings.ToLower(m[2]), m[1] != "", len(m[0])
	switch name {
	case "br", "details", "summary":
		return shown{text: "\n"}, tag, false
	case "img":
		if e = linked(attribute(srcAttribute, m[3]), attribute(altAttribute, m[3])); e.address == "" || closes {
			return e, 0, false
		}
		return e, tag, false
	}
	address := ""
	if name == "a" {
		address = attribute(hrefAttribute, m[3])
	}
	if closes || name == "a" && !isLink(address) {
		return e, 0, false
	}
	end := strings.Index(strings.ToLower(head[tag:]), "</"+name+">")
	if end < 0 {
		return e, 0, open
	}
	inner := strings.TrimSpace(anyTag.ReplaceAllString(head[tag:tag+end], ""))
	n = tag + end + len("</>") + len(name)
	switch name {
	case "a":
		return linked(address, inner), n, false
	case "sub":
		return shown{text: script(inner, subscripts, `\_`)}, n, false
	case "sup":
		return shown{text: script(inner, superscripts, `^`)}, n, false
	}
	return shown{text: inner}, n, false
}

// attribute returns the value of an attribute.
func attribute(name *regexp.Regexp, attributes string) string {
	if m := name.FindStringSubmatch(attributes); m != nil {
		return strings.TrimSpace(html.UnescapeString(m[1] + m[2]))
	}
	return ""
}

// target and label escape what would end the address, or the label, of a link.
var (
	target = strings.NewReplacer(" ", "%20", "(", "%28", ")", "%29", "<", "%3C", ">", "%3E", "\\", "%5C", "\n", "")
	label  = strings.NewReplacer("[", "(", "]", ")", "<", "", ">", "", "`", "", "\\", "", "\n", " ")
)

// linked returns a link to an address of an allowed scheme.
func linked(address, words string) shown {
	if !isLink(address) {
		return shown{}
	}
	return shown{text: label.Replace(words), address: target.Replace(address)}
}

// commonMark returns what is shown as CommonMark on one line.
func (e shown) commonMark() string {
	switch {
	case e.address == "":
		return e.text
	case e.text == "" || e.text == e.address:
		return e.address
	}
	return "[" + e.text + "](" + e.address + ")"
}

// The characters that have a raised or a lowered form, each before it.
var (
	superscripts = strings.NewReplacer("0", "⁰", "1", "¹", "2", "²", "3", "³", "4", "⁴", "5", "⁵", "6", "⁶", "7", "⁷", "8", "⁸", "9", "⁹",
		"+", "⁺", "-", "⁻", "−", "⁻", "=", "⁼", "(", "⁽", ")", "⁾", "n", "ⁿ", "i", "ⁱ")
	subscripts = strings.NewReplacer("0", "₀", "1", "₁", "2", "₂", "3", "₃", "4", "₄", "5", "₅", "6", "₆", "7", "₇", "8", "₈", "9", "₉",
		"+", "₊", "-", "₋", "−", "₋", "=", "₌", "(", "₍", ")", "₎")
)

// script returns an index or an exponent: in characters of that form, or behind a sign if it has others.
func script(inner string, forms *strings.Replacer, sign string) string {
	formed := true
	for _, r := range inner {
		formed = formed && forms.Replace(string(r)) != string(r)
	}
	switch {
	case formed:
		return forms.Replace(inner)
	case ordinal.MatchString(inner):
		return inner
	case utf8.RuneCountInString(inner) > 1 && sign == "^":
		return "^(" + inner + ")"
	}
	return sign + inner
}
