package assembly_test

import (
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
