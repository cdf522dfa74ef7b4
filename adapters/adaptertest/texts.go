package adaptertest

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/google/go-cmp/cmp"

	"parley/adapters"
)

// formatPromises are the promises of Format and FormatPartial.
var formatPromises = []promise{
	{"the platform accepts the pieces of a long text, and they contain all of its words", piecesKeepWords},
	{"a text mentions only the allowed users", onlyAllowedMentions},
	{"the preview of a growing text is a prefix of every later preview", previewIsStable},
	{"the preview of the whole text equals the result of Format", previewMatchesFormat},
}

// word matches the words of longText, which no conversion changes.
var word = regexp.MustCompile(`w\d{4}`)

// longText returns a text with words in every kind of block. It is longer than a post.
func longText() string {
	var b strings.Builder
	n := 0
	words := func(format string, times int) {
		for range times {
			fmt.Fprintf(&b, format, fmt.Sprintf("w%04d", n))
			n++
		}
	}
	for range 40 {
		b.WriteString("## ")
		words("%s ", 3)
		b.WriteString("\n\n")
		words("%s **and** _so_ on, ", 40)
		b.WriteString("\n\n")
		words("- %s\n", 10)
		b.WriteString("\n```go\n")
		words("%s := 1 // <- &\n", 30)
		b.WriteString("```\n\n| a | b |\n| - | - |\n")
		words("| %s | x |\n", 5)
		b.WriteString("\n")
	}
	words("%s", 1)
	return b.String()
}

func piecesKeepWords(s *fixture) {
	s.start()
	text := longText()
	post := s.ask(s.Room.ID, "")
	pieces := ability[adapters.Sender](s).Format(text, nil)
	if len(pieces) < 2 {
		s.t.Errorf("Format splits %d bytes into %d pieces, want at least 2", len(text), len(pieces))
	}
	var shown strings.Builder
	for n, piece := range pieces {
		post.Key, post.Text = fmt.Sprint("k", n), piece
		there, _ := s.shown(post.To, s.send(post))
		shown.WriteString(there.Text + "\n")
	}
	if diff := cmp.Diff(word.FindAllString(text, -1), word.FindAllString(shown.String(), -1)); diff != "" {
		s.t.Error(diff)
	}
}

func onlyAllowedMentions(s *fixture) {
	sender := ability[adapters.Sender](s)
	s.require(s.Asker.Mention != "", "mentions")
	text := "Hi " + s.Asker.Mention + ", tell " + s.Other.Mention + " of it."
	for allowed, mentions := range map[string][]string{"none": nil, "the asker": {s.Asker.Mention}} {
		pieces := sender.Format(text, mentions)
		if grower, ok := s.Adapter.(adapters.PartialFormatter); ok {
			shown, _, _ := grower.FormatPartial(text, mentions, false)
			pieces = append(pieces, shown)
		}
		for _, piece := range pieces {
			if strings.Contains(piece, s.Other.Mention) || strings.Contains(piece, s.Asker.Mention) != (mentions != nil) {
				s.t.Errorf("with %s allowed, a piece is %q", allowed, piece)
			}
		}
	}
}

// ambiguousText returns a text whose conversion can change when more text follows.
func (s *fixture) ambiguousText() string {
	return "# Head\n\nSee **bold _both_** and `code` of " + s.Asker.Mention + " & " + s.Other.Mention + ", <!channel> @everyone " +
		"[a link](https://example.com/?a=b&c=d) ~~old~~\n\n1. one\n   * two\n\n```sh\nls -l | wc\n```\n\n| a | b |\n|---|---|\n| `x` | y |\n\n> quoted\n\nend é 👩‍👧.\n"
}

func previewIsStable(s *fixture) {
	grower := ability[adapters.PartialFormatter](s)
	text, mentions, last := s.ambiguousText(), []string{s.Asker.Mention}, ""
	for cut := range text {
		shown, rest, full := grower.FormatPartial(text[:cut], mentions, false)
		if full || rest != text[:cut] {
			s.t.Fatalf("the preview of %q fills a post, and %q remains", text[:cut], rest)
		}
		if !strings.HasPrefix(shown, last) {
			s.t.Fatalf("the preview %q is followed by %q", last, shown)
		}
		last = shown
	}
	if whole := ability[adapters.Sender](s).Format(text, mentions); len(whole) != 1 || !strings.HasPrefix(whole[0], last) {
		s.t.Errorf("the last preview is %q, and the result of Format %q", last, whole)
	}
}

func previewMatchesFormat(s *fixture) {
	grower := ability[adapters.PartialFormatter](s)
	for _, text := range []string{s.ambiguousText(), longText(), "one", ""} {
		var grown []string
		for rest, full := text, true; full; {
			var shown string
			if shown, rest, full = grower.FormatPartial(rest, nil, true); shown != "" {
				grown = append(grown, shown)
			}
		}
		if diff := cmp.Diff(ability[adapters.Sender](s).Format(text, nil), grown); diff != "" {
			s.t.Error(diff)
		}
	}
}
