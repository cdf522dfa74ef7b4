package card_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"parley/adapters/markdown"
	"parley/ingest/card"
	"parley/ingest/card/cardtest"
)

var update = flag.Bool("update", false, "write the golden files")

// TestPlainText compares the lines of each node with its golden file, which is what platforms without cards show.
func TestPlainText(t *testing.T) {
	for name, v := range cardtest.Cards(t) {
		file, got := filepath.Join("testdata", "plain", name+".txt"), v.Plain()+"\n"
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if diff := cmp.Diff(string(want), got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", name, err, diff)
		}
		if got := strings.Join(markdown.Format(v.Markdown(), markdown.Plain, 4000), "\n"); got != v.Plain() {
			t.Errorf("%s in markdown shows\n%s\nwant\n%s", name, got, v.Plain())
		}
	}
}

// TestNothingToSee checks that nodes without words leave no empty lines.
func TestNothingToSee(t *testing.T) {
	v := cardtest.View(t, `{"version":"2.0","root":{"type":"stack","children":["  ",{"type":"badge","label":" "},{"type":"table","columns":["",""],"rows":[["",""]]},
		{"type":"list","items":["",{"type":"badge","label":" "}]},{"type":"badge","label":"b"},{"type":"progress","value":1,"max":3000000}]}}`)
	if got, want := v.Plain(), "b\n▱▱▱▱▱▱▱▱▱▱ 0% (1 of 3000000)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestAddressesStayStraight checks that no character of a label turns the address beside it round.
func TestAddressesStayStraight(t *testing.T) {
	v := cardtest.View(t, `{"version":"2.0","root":{"type":"stack","children":[{"type":"button","label":"a\u202e\u2067b","url":"https://evil.example/"},
		{"type":"image","alt":"c\u202ed","url":"https://evil.example/"}]}}`)
	if got, want := v.Plain(), "ab: https://evil.example/\ncd: https://evil.example/"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestActions checks what a press means: the id and the value of each button, and whether it needs an approver.
func TestActions(t *testing.T) {
	v := cardtest.Cards(t)["button"]
	for id, want := range map[string]card.Action{
		"parley-card-0": {ID: "book", Value: []byte(`{"room":7}`)}, "parley-card-1": {ID: "yes", Value: []byte(`"yes"`)}, "parley-card-2": {ID: "pay", Approval: true},
	} {
		b := v.Button(id)
		if b == nil {
			t.Errorf("%s: no button", id)
		} else if diff := cmp.Diff(want, b.Action); diff != "" {
			t.Errorf("%s: %s", id, diff)
		}
	}
	if v.Button("") != nil || v.Button("parley-card-3") != nil {
		t.Error("a button that opens an address has an id")
	}
}

var (
	generous  = card.Form{Parts: 48, Total: 9000, Text: 3000, Title: 150, Badges: 10, Fields: 10, FieldLabel: 500, FieldValue: 1000, Rows: 100, Columns: 20, Tables: 1, Alt: 2000, URL: 3000, Buttons: 25, Label: 75}
	joining   = card.Form{Parts: 10, Total: 1800, Text: 1700, Title: 256, Join: true, Badges: 25, Fields: 25, FieldLabel: 256, FieldValue: 1024, Alt: 256, URL: 512, Buttons: 25, Label: 80}
	textsOnly = card.Form{Parts: 1000, Total: 500, Text: 300, Buttons: 5, Label: 20}
)

// TestSplit divides a card that is too large in every way. Each word of it is shown once and in order within its part, and each button stays.
func TestSplit(t *testing.T) {
	for _, size := range []func(string) int{utf8.RuneCountInString, func(s string) int { return len(card.Escape(s)) }} {
		for _, form := range []card.Form{generous, joining, textsOnly} {
			form.Size = size
			big := cardtest.Big()
			views := form.Split(big)
			seen, pressed := map[string]int{}, 0
			for _, v := range views {
				if n := size(v.Plain()); n > form.Total+form.Text {
					t.Errorf("a post has %d characters", n)
				}
				for _, p := range v.Parts {
					if p.Kind == card.KindButtons {
						pressed += len(p.Buttons)
					}
				}
				for _, w := range cardtest.Words(v) {
					seen[w]++
				}
			}
			for _, w := range cardtest.Words(big) {
				if seen[w] == 0 {
					t.Errorf("%s is lost", w)
				}
			}
			if want := 61; pressed != want { // and the address is text
				t.Errorf("%d buttons, want %d", pressed, want)
			}
		}
	}
}

// FuzzMarkdown checks that a text in CommonMark shows its characters alone.
func FuzzMarkdown(f *testing.F) {
	f.Add("a *b* [c](https://d.e) <@U1> 1. x\n# y\n    z\n- w `code` https://x.y/_a_(b)")
	for _, s := range []string{"http://_0_", "(see https://x.y/a_(b_c)).", "http://x.y/&lt;*<b>", "https://x.y/[a]|$b$", "xhttp://x_y_", "www.x.yz/$a$", "ftp://x.yz/$a$ $b$", "https://x.y/#a!@b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		s = strings.Join(strings.Fields(s), " ")
		if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError }) {
			return
		}
		shown := strings.Join(markdown.Format(card.View{Parts: []card.Part{{Kind: card.KindText, Text: s}}}.Markdown(), markdown.Plain, 1<<20), "\n")
		if shown != s {
			t.Errorf("%q shows %q", s, shown)
		}
	})
}

// TestAButtonShowsTheHostThatItOpens writes hosts with letters of other alphabets, and hides them behind a user's name.
func TestAButtonShowsTheHostThatItOpens(t *testing.T) {
	for address, host := range map[string]string{
		"https://b\u0430nk.example/x": "xn--bnk-6cd.example", "https://b\u00e4nk.example:8443/": "xn--bnk-qla.example:8443", "https://\uff42ank.example/": "bank.example",
		"https://bank.example@evil.example/x": "evil.example", "https://[2001:db8::1]:80/": "[2001:db8::1]:80", "https://bank.example/": "bank.example",
	} {
		v := card.View{Parts: []card.Part{{Kind: card.KindButtons, Buttons: []card.Press{{Label: "Open", URL: address}}}}}
		f := generous
		f.Size = func(text string) int { return len(text) }
		if got := f.Split(v)[0].Parts[0].Buttons[0].Label; got != "Open ("+host+")" {
			t.Errorf("%s: %q", address, got)
		}
	}
}
