package adaptertest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// Answers compares the posts of the answers in testdata/answers with the golden file of a name there. It
// writes the file if update is set. An answer ends at a line of "=====", and a post at one of "-----".
func Answers(t *testing.T, name string, update bool, format func(text string) []string) {
	t.Helper()
	folder := filepath.Join(module(t), "testdata", "answers")
	texts, err := os.ReadFile(filepath.Join(folder, "answers.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for text := range strings.SplitSeq(string(texts), "\n=====\n") {
		got = append(got, strings.Join(format(text), "\n-----\n"))
	}
	path, all := filepath.Join(folder, name+".golden"), strings.Join(got, "\n=====\n")
	if update {
		if err := os.WriteFile(path, []byte(all), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(all, "\n")); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// module returns the folder of go.mod, from the folder of the running test.
func module(t *testing.T) string {
	t.Helper()
	for folder := "."; len(folder) < 64; folder = filepath.Join("..", folder) {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			return folder
		}
	}
	t.Fatal("the test runs outside the module")
	return ""
}

// Words checks that the posts of any answer have its words once and in order.
func Words(t *testing.T, format func(text string) []string) {
	t.Helper()
	numbered := regexp.MustCompile(`w[0-9]+w`)
	around := []string{"%", "**%**", "*%*", "~~%~~", "__% and__", "`%`", "「%」", "**「%」**", "[%](https://x.y/a_b_c)", "<kbd>%</kbd>", "<a href=\"https://x.y/d_e\">%</a>",
		"see%", "%\n", "\n\n%", "\n- %", "\n  1) %", "\n> %", "%<br>", "\n~~~\n%\n~~~\n", "\n```sh\nx || %\n```\n", "\n## %\n", "\n<details>\n<summary>%</summary>\n",
		"\n\n| a | b |\n|---|---|\n| % | c |\n| d<br>% | e |\n\n", "https://x.y/" + strings.Repeat("long_", 30) + "%", strings.Repeat("word ", 60) + "%"}
	rapid.Check(t, func(t *rapid.T) {
		var text strings.Builder
		for _, piece := range rapid.SliceOfN(rapid.SampledFrom(around), 1, 120).Draw(t, "pieces") {
			for before, rest, ok := strings.Cut(piece, "%"); ok || before != ""; before, rest, ok = strings.Cut(rest, "%") {
				text.WriteString(before)
				if ok {
					fmt.Fprintf(&text, "w%dw", text.Len())
				}
			}
			text.WriteString(" ")
		}
		want := numbered.FindAllString(text.String(), -1)
		got := numbered.FindAllString(strings.Join(format(text.String()), "\n"), -1)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%q (-want +got):\n%s", text.String(), diff)
		}
	})
}
