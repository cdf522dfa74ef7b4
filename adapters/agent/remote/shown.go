package remote

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"parley/assembly/turn"
	"parley/ingest/stream"
)

// shown is what people see of an answer beside its text: pictures, which become its files, and sources.
type shown struct {
	scan    scanner
	files   []stream.File
	sums    map[[sha256.Size]byte]bool // of the pictures, which some servers send twice
	bytes   int                        // of the pictures in base64
	large   int                        // pictures that are left out because they are too large
	sources []source
}

// besides is the room for the other parts of an answer with pictures, in bytes.
const besides = 64 << 10

// Picture takes a picture of the answer: a data address, or the address of a picture elsewhere, which becomes a link.
func (a *Answer) Picture(address string) error {
	if head, data, ok := strings.Cut(address, ";base64,"); ok && strings.HasPrefix(head, "data:image/") {
		a.picture(head, data)
		return nil
	}
	if to := linkTo(address); to != "" {
		return a.Text("\n\n[picture](" + to + ")\n\n")
	}
	return nil
}

// picture makes a picture in base64 a file of the answer. It reports whether the data is one, since models make data addresses up.
func (a *Answer) picture(head, data string) bool {
	data = strings.TrimRight(strings.NewReplacer("-", "+", "_", "/", "%2B", "+", "%2F", "/", "%3D", "").Replace(data), "=")
	content, err := base64.RawStdEncoding.DecodeString(data)
	if err != nil {
		return false
	}
	kind := http.DetectContentType(content)
	if strings.HasPrefix(head, "data:image/svg+xml") && bytes.Contains(content, []byte("<svg")) {
		kind = "image/svg+xml"
	}
	kind, end, ok := strings.Cut(kind, "/")
	if !ok || kind != "image" {
		return false
	}
	name := "picture"
	if n := len(a.shown.files); n > 0 {
		name += "-" + strconv.Itoa(n+1)
	}
	a.File(stream.File{Name: name + "." + strings.TrimSuffix(strings.Replace(end, "jpeg", "jpg", 1), "+xml"), MimeType: "image/" + end, Data: content})
	return true
}

// File takes a file of the answer, once. One that is too large is left out, which a WARNING says.
func (a *Answer) File(file stream.File) {
	s, sum, size := &a.shown, sha256.Sum256(file.Data), base64.StdEncoding.EncodedLen(len(file.Data))
	switch {
	case s.sums[sum]:
		return
	case a.Bound(a.text.Len()+s.bytes+size+besides) != nil:
		s.large++
		return
	case s.sums == nil:
		s.sums = map[[sha256.Size]byte]bool{}
	}
	s.sums[sum] = true
	s.bytes += size
	s.files = append(s.files, file)
}

// Link takes a thing elsewhere that nobody fetches: a link, or its title alone if the address is none of the web.
func (a *Answer) Link(title, address string) error {
	title = label(title)
	if to := linkTo(address); to != "" {
		title = "[" + title + "](" + to + ")"
	}
	return a.Text(title)
}

// label returns a title as the words of a link.
func label(title string) string {
	return strings.NewReplacer("[", "(", "]", ")", "\\", "", "`", "").Replace(Plain(title, 80))
}

// withFiles returns the details of the answer with its pictures behind the files that they have.
func (a *Answer) withFiles(details json.RawMessage) json.RawMessage {
	if len(a.shown.files) == 0 {
		return details
	}
	members, files := map[string]json.RawMessage{}, []json.RawMessage{}
	_ = json.Unmarshal(details, &members)
	_ = json.Unmarshal(members["files"], &files)
	for _, file := range a.shown.files {
		raw, _ := json.Marshal(file) // texts and bytes always encode
		files = append(files, raw)
	}
	members["files"], _ = json.Marshal(files)
	details, _ = json.Marshal(members) // valid JSON always encodes
	return details
}

// tellLarge emits a WARNING about pictures that are left out.
func (a *Answer) tellLarge() error {
	if a.shown.large == 0 {
		return nil
	}
	return a.say(stream.Message{Type: stream.Warning, ActivityID: a.id(), Text: fmt.Sprintf("The answer has %d more files than max_bytes allows: they are left out.", a.shown.large)})
}

// pictureOf returns the address of the picture that a part of a content is, in the forms of OpenAI, OpenRouter,
// Anthropic and Google; empty for none.
func pictureOf(raw json.RawMessage) string {
	var address string
	if json.Unmarshal(raw, &address) == nil {
		return address
	}
	members := map[string]json.RawMessage{}
	if json.Unmarshal(raw, &members) != nil {
		return ""
	}
	word := func(names ...string) (s string) {
		for _, name := range names {
			if json.Unmarshal(members[name], &s) == nil && s != "" {
				return s
			}
		}
		return ""
	}
	if data := word("b64_json", "data"); data != "" && !strings.HasPrefix(data, "data:") {
		return "data:" + cmp.Or(word("media_type", "mime_type", "mimeType"), "image/png") + ";base64," + data
	}
	if s := word("url", "data", "image_url", "image"); s != "" {
		return s
	}
	for _, name := range []string{"image_url", "image", "source", "inline_data", "inlineData"} {
		if value := members[name]; len(value) > 0 && value[0] == '{' {
			return pictureOf(value)
		}
	}
	return ""
}

// PicturesOf returns the addresses of a list of pictures.
func PicturesOf(raw json.RawMessage) (addresses []string) {
	var list []json.RawMessage
	_ = json.Unmarshal(raw, &list) // another value has no pictures
	for _, one := range list {
		if address := pictureOf(one); address != "" {
			addresses = append(addresses, address)
		}
	}
	return addresses
}

// The beginning of a data address with a picture, alone or as Markdown and HTML have it; and the end of a text that may be one.
var (
	dataBegin = regexp.MustCompile(`(?:!?\[([^\[\]\n]{0,300})\]\( {0,3}<?|<img\s[^<>\n]{0,300}?src=["']?)?(data:image/[a-zA-Z0-9.+-]{1,40}(?:;[a-zA-Z0-9=._-]{1,60})*);base64,`)
	mayBegin  = regexp.MustCompile(`(?:!?\[[^\[\]\n]{0,300}(?:\](?:\( {0,3}<?(?:d[a-zA-Z0-9:/.+;=,_-]{0,150})?)?)?|<img(?:\s[^<>\n]{0,450})?|(?:^|[\s)>])!|data:[a-zA-Z0-9/.+;=,_-]{0,150})$`)
)

// scanner takes data addresses of pictures out of a text that grows, but none in code.
type scanner struct {
	rest string // the end of the text so far, which may be the beginning of an address

	data      *strings.Builder // of the address that is being read; nil for none
	head, alt string
	wraps     byte // the sign that ends what is around the address; 0 for nothing
	skips     bool // the address has ended, and its wrapper has not

	line   []byte // the beginning of the current line
	ticks  int    // backticks in it
	fenced bool   // it is in a fence
}

// add returns the text without pictures, which take gets. take returns whether it is one.
func (s *scanner) add(text string, take func(head, data string) bool) string {
	if s.rest == "" && !s.skips && s.data == nil && !mayHave(text) {
		s.pass(text)
		return text
	}
	var out strings.Builder
	pass := func(text string) {
		s.pass(text)
		out.WriteString(text)
	}
	buffer := s.rest + text
	s.rest = ""
	for buffer != "" {
		switch {
		case s.skips:
			i := strings.IndexAny(buffer, string(s.wraps)+"\n")
			if i < 0 {
				return out.String()
			}
			if s.skips = false; buffer[i] == s.wraps {
				i++
			}
			buffer = buffer[i:]
		case s.data != nil:
			i := strings.IndexFunc(buffer, func(r rune) bool {
				return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && !strings.ContainsRune("+/=_-%", r)
			})
			if i < 0 {
				s.data.WriteString(buffer)
				return out.String()
			}
			s.data.WriteString(buffer[:i])
			if !take(s.head, s.data.String()) {
				pass(s.alt)
			}
			s.data, s.skips, buffer = nil, s.wraps != 0, buffer[i:]
		default:
			at := dataBegin.FindStringSubmatchIndex(buffer)
			if at == nil {
				tail := max(0, len(buffer)-900)
				if i := mayBegin.FindStringIndex(buffer[tail:]); i != nil {
					tail += i[0]
					s.rest = buffer[tail:]
					pass(buffer[:tail])
					return out.String()
				}
				pass(buffer)
				return out.String()
			}
			pass(buffer[:at[0]])
			if s.fenced || s.ticks%2 == 1 {
				pass(buffer[at[0]:at[1]])
				buffer = buffer[at[1]:]
				continue
			}
			s.data, s.head, s.alt, s.wraps = new(strings.Builder), buffer[at[4]:at[5]], "", 0
			if at[2] >= 0 {
				s.alt, s.wraps = buffer[at[2]:at[3]], ')'
			} else if buffer[at[0]] == '<' {
				s.wraps = '>'
			}
			buffer = buffer[at[1]:]
		}
	}
	return out.String()
}

// mayHave reports whether a text may contain or begin an address, since few texts do. See dataBegin and mayBegin.
func mayHave(text string) bool {
	return strings.IndexByte(text, '[') >= 0 || strings.IndexByte(text, '<') >= 0 || strings.HasSuffix(text, "!") || strings.Contains(text, "data:")
}

// end returns the rest of the text. An address that does not end is left out.
func (s *scanner) end(take func(head, data string) bool) string {
	rest := s.rest
	if s.data != nil && (s.wraps != 0 || !take(s.head, s.data.String())) {
		rest = s.alt
	}
	*s = scanner{}
	return rest
}

// held returns the number of bytes of the address that is being read.
func (s *scanner) held() int {
	if s.data == nil {
		return 0
	}
	return s.data.Len()
}

// pass follows the text into and out of code.
func (s *scanner) pass(text string) {
	for _, c := range []byte(text) {
		switch {
		case c == '\n':
			if begin := bytes.TrimLeft(s.line, " \t>"); bytes.HasPrefix(begin, []byte("```")) || bytes.HasPrefix(begin, []byte("~~~")) {
				s.fenced = !s.fenced
			}
			s.line, s.ticks = s.line[:0], 0
			continue
		case c == '`':
			s.ticks++
		}
		if len(s.line) < 16 {
			s.line = append(s.line, c)
		}
	}
}

// source is a source of the answer. number is that of its marks in the text, such as [1]; 0 for none.
type source struct {
	number         int
	address, title string
}

// maxSources bounds the sources of an answer.
const maxSources = 20

// Source takes a source that the server names beside the text. Its number is that of the marks in the text; 0 for none.
func (a *Answer) Source(number int, address, title string) {
	to := linkTo(address)
	known := slices.ContainsFunc(a.shown.sources, func(s source) bool { return s.address == to })
	if to == "" || known || len(a.shown.sources) == maxSources {
		return
	}
	a.shown.sources = append(a.shown.sources, source{number, to, label(title)})
}

// linkTo returns an address in the form that a link of Markdown takes; empty for none of the web.
func linkTo(address string) string {
	to, err := url.Parse(address)
	if err != nil || to.Scheme != "http" && to.Scheme != "https" || to.Host == "" || len(address) > 2000 {
		return ""
	}
	return strings.NewReplacer("(", "%28", ")", "%29", "<", "%3C", ">", "%3E", " ", "%20", "\n", "").Replace(address)
}

// Citations takes the sources of a list: addresses, or objects with one, in the forms of Perplexity, OpenAI and
// Anthropic. numbered says that the text has their place in the list as marks.
func (a *Answer) Citations(raw json.RawMessage, numbered bool) {
	var list []json.RawMessage
	_ = json.Unmarshal(raw, &list) // another value has no sources
	for i, one := range list {
		var s struct {
			URL, Title  json.RawMessage
			URLCitation json.RawMessage `json:"url_citation"`
		}
		if json.Unmarshal(one, &s) != nil {
			s.URL = one
		}
		_ = json.Unmarshal(s.URLCitation, &s) // OpenAI nests it
		var address, title string
		_ = json.Unmarshal(s.URL, &address)
		_ = json.Unmarshal(s.Title, &title)
		a.Source(map[bool]int{true: i + 1}[numbered], address, title)
	}
}

// cite writes a line with the sources that the text does not name itself. Of numbered ones, these are the marked ones, if
// any is.
func (a *Answer) cite() error {
	text := a.String()
	if trimmed := strings.TrimSpace(text); trimmed == "" || trimmed == turn.DefaultQuietReply {
		return nil
	}
	isMarked := func(s source) bool { return s.number > 0 && strings.Contains(text, fmt.Sprintf("[%d]", s.number)) }
	marked := slices.ContainsFunc(a.shown.sources, isMarked)
	var links []string
	for _, s := range a.shown.sources {
		if strings.Contains(text, s.address) || marked && s.number > 0 && !isMarked(s) {
			continue
		}
		label := s.title
		if to, err := url.Parse(s.address); label == "" && err == nil {
			label = to.Host
		}
		if s.number > 0 {
			label = fmt.Sprintf("%d: %s", s.number, label)
		}
		links = append(links, "["+label+"]("+s.address+")")
	}
	line := "\n\nSources: " + strings.Join(links, ", ")
	if len(links) == 0 || a.Bound(a.gone+a.text.Len()+len(line)) != nil {
		return nil
	}
	return a.write(line)
}
