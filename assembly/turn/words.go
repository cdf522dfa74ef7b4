package turn

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"mime"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"parley/ingest/journal/files"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/runs"
)

// maxWords bounds the words of a file that are read into the input, in bytes.
const maxWords = 100 << 10

// readWords reads the words of the text files of the turns into their attachments, those of the newest
// messages first, as far as the window's bytes reach. The other files have no words afterwards, so
// the input only names them. All reads together take at most a quarter of the run's time, because the
// place of the copies may hang.
func (a *attempt) readWords(ctx context.Context, turns []runs.Turn) {
	ctx, cancel := context.WithTimeout(ctx, a.profile.Timeout/4)
	defer cancel()
	left := a.settings.Window.Bytes
	for i := range turns {
		for _, m := range turns[i].Messages {
			left -= len(m.Content)
		}
	}
	read := func(m *messages.Message) {
		for i := range m.Attachments {
			file := &m.Attachments[i]
			words := ""
			if a.profile.Files == FilesText {
				words = a.words(ctx, file)
			}
			if len(words) > left {
				words = ""
			}
			file.Words, left = words, left-len(words)
		}
	}
	for i := range slices.Backward(turns) {
		for j := range slices.Backward(turns[i].Messages) {
			read(&turns[i].Messages[j])
		}
		for _, m := range inBlock(&turns[i]) {
			read(m)
		}
	}
}

// isPicture reports whether a file is a picture by its type.
func isPicture(mimeType string) bool { return strings.HasPrefix(mimeType, "image/") }

// words returns the words of a file; empty if it is no small text.
func (a *attempt) words(ctx context.Context, file *files.Attachment) string {
	switch {
	case len(file.Words) > maxWords: // the payload had them
		return ""
	case file.Words != "":
		return text([]byte(file.Words), true)
	}
	if file.State != files.Stored || file.Size > maxWords || !mayBeText(file.Name, file.MimeType) {
		return ""
	}
	copied, err := a.Files.Open(ctx, file.Bucket, file.Path)
	if err != nil {
		return "" // the copy is gone or unreachable, and the file is only named
	}
	defer copied.Close()
	content, err := io.ReadAll(io.LimitReader(copied, maxWords+1))
	if err != nil || len(content) > maxWords {
		return ""
	}
	return text(content, isText(file.Name, file.MimeType))
}

// binaryTypes and binaryNames are types and extensions of files that are no text, even if their bytes
// are characters.
var (
	binaryTypes = []string{"image", "audio", "video", "font", "model"}
	binaryNames = []string{".pdf", ".rtf", ".ps", ".eps", ".svg"}
)

// textNames are extensions of texts. A browser takes a program in TypeScript for a video.
var textNames = strings.Fields(".txt .text .log .out .err .md .markdown .csv .tsv .json .jsonl .ndjson .xml .html .htm .yaml .yml .toml .ini .cfg .conf .diff .patch .srt .vtt .sql .sh .bat .ps1 .py .js .ts .tsx .mts .go .rs .java .c .h .cpp .cs .rb .php .css .tex")

// isText reports whether a file is a text by its name or its type.
func isText(name, mimeType string) bool {
	kind, _, _ := mime.ParseMediaType(mimeType)
	return slices.Contains(textNames, strings.ToLower(path.Ext(name))) || strings.HasPrefix(kind, "text/") && kind != "text/rtf"
}

// mayBeText reports whether a file may be a text, by its name and its type. Its bytes decide.
func mayBeText(name, mimeType string) bool {
	if isText(name, mimeType) {
		return true
	}
	kind, _, _ := mime.ParseMediaType(mimeType)
	family, _, _ := strings.Cut(kind, "/")
	return !slices.Contains(binaryTypes, family) && kind != "application/pdf" && kind != "application/rtf" &&
		!slices.Contains(binaryNames, strings.ToLower(path.Ext(name)))
}

// ansi matches the control sequences of a terminal, such as the colours of a build's log.
var ansi = regexp.MustCompile("\x1b\\[[0-?]*[ -/]*[@-~]|\x1b\\][^\a\x1b]*(?:\a|\x1b\\\\)")

// text returns bytes as a text: UTF-8, or UTF-16 with its mark, without control characters, except those that
// separate words and lines. It is empty if they are none. In a file that is a text by its name or type,
// other bytes become U+FFFD, and control characters but U+0000 are left out.
func text(content []byte, known bool) string {
	words := ansi.ReplaceAllString(strings.TrimPrefix(decoded(content), "\ufeff"), "")
	isControl := func(r rune) bool { return unicode.IsControl(r) && !strings.ContainsRune("\t\n\r\f", r) }
	if known && !strings.Contains(words, "\x00") {
		words = strings.Map(func(r rune) rune {
			if isControl(r) {
				return -1
			}
			return r
		}, strings.ToValidUTF8(words, "\uFFFD"))
	}
	if !utf8.ValidString(words) || strings.ContainsFunc(words, isControl) || strings.TrimSpace(words) == "" {
		return ""
	}
	return words
}

// decoded returns bytes as UTF-8, if they begin with the mark of UTF-16.
func decoded(content []byte) string {
	var order binary.ByteOrder = binary.LittleEndian
	switch {
	case bytes.HasPrefix(content, []byte{0xff, 0xfe}):
	case bytes.HasPrefix(content, []byte{0xfe, 0xff}):
		order = binary.BigEndian
	default:
		return string(content)
	}
	units := make([]uint16, 0, len(content)/2)
	for pair := range slices.Chunk(content[:len(content)/2*2], 2) {
		units = append(units, order.Uint16(pair))
	}
	return string(utf16.Decode(units))
}
