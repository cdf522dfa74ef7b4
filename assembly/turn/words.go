package turn

import (
	"context"
	"io"
	"mime"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"parley/ingest/journal/files"
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
	for _, turn := range slices.Backward(turns) {
		for _, m := range slices.Backward(turn.Messages) {
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
	}
}

// words returns the words of a file; empty if it is no small text.
func (a *attempt) words(ctx context.Context, file *files.Attachment) string {
	switch {
	case len(file.Words) > maxWords: // the payload had them
		return ""
	case file.Words != "":
		return text([]byte(file.Words))
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
	return text(content)
}

// binaryTypes and binaryNames are types and extensions of files that are no text, even if their bytes
// are characters.
var (
	binaryTypes = []string{"image", "audio", "video", "font", "model"}
	binaryNames = []string{".pdf", ".rtf", ".ps", ".eps", ".svg"}
)

// mayBeText reports whether a file may be a text, by its name and its type. Its bytes decide.
func mayBeText(name, mimeType string) bool {
	kind, _, _ := mime.ParseMediaType(mimeType)
	family, _, _ := strings.Cut(kind, "/")
	return !slices.Contains(binaryTypes, family) && kind != "application/pdf" && kind != "application/rtf" &&
		!slices.Contains(binaryNames, strings.ToLower(path.Ext(name)))
}

// text returns bytes as a text: UTF-8 without control characters, except those that separate words and
// lines. It is empty if they are none.
func text(content []byte) string {
	words := strings.TrimPrefix(string(content), "\ufeff")
	isControl := func(r rune) bool { return unicode.IsControl(r) && !strings.ContainsRune("\t\n\r\f", r) }
	if !utf8.ValidString(words) || strings.ContainsFunc(words, isControl) || strings.TrimSpace(words) == "" {
		return ""
	}
	return words
}
