package assembly_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/assembly"
)

func part(id string, role assembly.Role, text string) assembly.Message {
	return assembly.Message{ID: id, Role: role, Parts: []assembly.Part{{Text: text}}}
}

// TestShrink checks that whole turns are left out first, then lines of the current turn's block, and never a
// message of the current turn or a client's instructions.
func TestShrink(t *testing.T) {
	lines := "[Thread context]" + strings.Repeat("\n- Ash: hm", 100)
	messages := []assembly.Message{
		part("context-a", "system", "block"), part("a", "user", "[Ash]: a"), part("r", "assistant", "first"),
		part("b", "user", "[Ash]: b"), part("c", "user", "[Ash]: c"), part("s", "assistant", "second"),
		part("context-d", "system", lines), part("given-0-e", "system", "instructions"), part("d", "user", "[Ash]: d"), part("e", "user", "[Ash]: e"),
	}
	all := assembly.Size(messages)
	for _, c := range []struct {
		limit int
		want  []string
		block int // bytes
	}{
		{all, []string{"context-a", "a", "r", "b", "c", "s", "context-d", "given-0-e", "d", "e"}, len(lines)},
		{all - 1, []string{"b", "c", "s", "context-d", "given-0-e", "d", "e"}, len(lines)},
		{all - 30, []string{"context-d", "given-0-e", "d", "e"}, len(lines)},
		{600, []string{"context-d", "given-0-e", "d", "e"}, 566},
		{300, []string{"given-0-e", "d", "e"}, 0},
		{0, []string{"given-0-e", "d", "e"}, 0},
	} {
		var ids []string
		block := 0
		got := assembly.Shrink(messages, "d", c.limit)
		for _, m := range got {
			if ids = append(ids, m.ID); m.ID == "context-d" {
				block = len(m.Text())
				if !strings.HasPrefix(m.Text(), "[Thread context]\n- Ash") {
					t.Errorf("%d: the block is %.40q", c.limit, m.Text())
				}
			}
		}
		if diff := cmp.Diff(c.want, ids); diff != "" || block != c.block || c.limit > 500 && assembly.Size(got) > c.limit {
			t.Errorf("%d: %d bytes of block, %d in all\n%s", c.limit, block, assembly.Size(got), diff)
		}
	}
	if got := assembly.Shrink(nil, "d", 10); len(got) != 0 {
		t.Error(got)
	}
}

// TestShrinkNamesFiles checks that a turn that is too long by itself loses the words of its files, those of the
// oldest message first, and keeps their names and what else fits.
func TestShrinkNamesFiles(t *testing.T) {
	file := func(n int) assembly.File {
		return assembly.File{Name: fmt.Sprint("f", n), MimeType: "text/plain", Words: strings.Repeat("w", 1000)}
	}
	old := asked(said(1, olivia, "before"))
	now := asked(said(2, olivia, "look", file(1), file(2)), said(3, olivia, "and here", file(3)))
	old.Messages[0].ID, now.Messages[0].ID, now.Messages[1].ID = "m1", "m2", "m3"
	now.Context = []assembly.Line{said(0, olivia, "aside")}
	messages := assembly.Assemble("echo", []assembly.Turn{old, now}, wide, mentions)
	for _, c := range []struct {
		limit int
		want  string
	}{
		{5000, "before aside f1 f2 f3"}, {3150, "f1 f2 f3"}, {2500, "before aside f3"}, {900, "before aside"}, {10, ""},
	} {
		shown := assembly.Shrink(messages, "m2", c.limit)
		text := show(shown)
		var got []string
		for _, mark := range []string{"before", "aside", "f1", "f2", "f3"} {
			if strings.Contains(text, mark+"\nwww") || !strings.HasPrefix(mark, "f") && strings.Contains(text, mark) {
				got = append(got, mark)
			}
		}
		if strings.Join(got, " ") != c.want || !strings.Contains(text, "]: look") || !strings.Contains(text, "]: and here") || c.limit > 100 && assembly.Size(shown) > c.limit {
			t.Errorf("%d: %q, %d bytes\n%s", c.limit, got, assembly.Size(shown), text)
		}
		files := 0
		for _, m := range shown {
			for _, p := range m.Parts {
				if p.File != nil {
					files++
				}
			}
		}
		if files != 3-strings.Count(c.want, "f1")-strings.Count(c.want, "f2")-strings.Count(c.want, "f3") {
			t.Errorf("%d: %d files are named", c.limit, files)
		}
	}
	if again := assembly.Shrink(messages, "m2", 5000); !cmp.Equal(again, messages) {
		t.Error("Shrink has changed its argument")
	}
}
