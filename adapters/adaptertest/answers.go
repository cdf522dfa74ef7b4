package adaptertest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
