package adaptertest

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/google/go-cmp/cmp"

	"parley/adapters"
)

// ofTexts is what holds for Format and FormatPartial.
var ofTexts = []promise{
	{"the pieces of a long text are taken by the platform, and hold all of its words", piecesHoldAll},
	{"no one is mentioned but who may be", mentionsAreGiven},
	{"what is shown of a growing text begins what is shown later", growthIsStable},
	{"Grow shows what Format makes of the whole text", growthIsFormat},
}

// word is one that no conversion changes.
var word = regexp.MustCompile(`w\d{4}`)

// longText has words of every kind of block, and is longer than a post.
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

func piecesHoldAll(s *stage) {
	s.play()
	text := longText()
	post := s.asks(s.Room.ID, "")
	pieces := able[adapters.Sender](s).Format(text, nil)
	if len(pieces) < 2 {
		s.t.Errorf("a text of %d bytes is %d pieces", len(text), len(pieces))
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

func mentionsAreGiven(s *stage) {
	sender := able[adapters.Sender](s)
	s.needs(s.Asker.Mention != "", "mentions")
	text := "Hi " + s.Asker.Mention + ", tell " + s.Other.Mention + " of it."
	for mentions, of := range map[string][]string{"none": nil, "the asker": {s.Asker.Mention}} {
		pieces := sender.Format(text, of)
		if grower, ok := s.Adapter.(adapters.PartialFormatter); ok {
			shown, _, _ := grower.FormatPartial(text, of, adapters.Partial{})
			pieces = append(pieces, shown)
		}
		for _, piece := range pieces {
			if strings.Contains(piece, s.Other.Mention) || strings.Contains(piece, s.Asker.Mention) != (of != nil) {
				s.t.Errorf("%s may be mentioned: %q", mentions, piece)
			}
		}
	}
}

// tricky has what may mean something else with more behind it.
func (s *stage) tricky() string {
	return "# Head\n\nSee **bold _both_** and `code` of " + s.Asker.Mention + " & " + s.Other.Mention + ", <!channel> @everyone " +
		"[a link](https://example.com/?a=b&c=d) ~~old~~\n\n1. one\n   * two\n\n```sh\nls -l | wc\n```\n\n| a | b |\n|---|---|\n| `x` | y |\n\n> quoted\n\nend é 👩‍👧.\n"
}

func growthIsStable(s *stage) {
	grower := able[adapters.PartialFormatter](s)
	text, mentions, last := s.tricky(), []string{s.Asker.Mention}, ""
	for cut := range text {
		shown, rest, full := grower.FormatPartial(text[:cut], mentions, adapters.Partial{})
		if full || rest != text[:cut] {
			s.t.Fatalf("%q fills a post, with %q behind it", text[:cut], rest)
		}
		if !strings.HasPrefix(shown, last) {
			s.t.Fatalf("%q was shown, and then %q", last, shown)
		}
		last = shown
	}
	if whole := able[adapters.Sender](s).Format(text, mentions); len(whole) != 1 || !strings.HasPrefix(whole[0], last) {
		s.t.Errorf("%q was shown, and is %q", last, whole)
	}
}

func growthIsFormat(s *stage) {
	grower := able[adapters.PartialFormatter](s)
	for _, text := range []string{s.tricky(), longText(), "one", ""} {
		var grown []string
		for rest, full := text, true; full; {
			var shown string
			if shown, rest, full = grower.FormatPartial(rest, nil, adapters.Partial{Done: true}); shown != "" {
				grown = append(grown, shown)
			}
		}
		if diff := cmp.Diff(able[adapters.Sender](s).Format(text, nil), grown); diff != "" {
			s.t.Error(diff)
		}
	}
}
