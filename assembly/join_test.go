package assembly_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/assembly"
)

func TestJoin(t *testing.T) {
	text := func(role assembly.Role, texts ...string) assembly.Message {
		m := assembly.Message{Role: role}
		for _, t := range texts {
			m.Parts = append(m.Parts, assembly.Part{Text: t})
		}
		return m
	}
	picture := text(assembly.RoleUser, "[Ash]: look")
	picture.Parts = append(picture.Parts, assembly.Part{File: &assembly.File{Name: "a.png", MimeType: "image/png"}})

	for what, c := range map[string]struct {
		in   []assembly.Message
		want string
	}{
		"nothing": {nil, ""},
		"headers begin lines, other lines are indented": {
			[]assembly.Message{text("user", "[Ash]: a\r\n\n[Olivia]: b\u2029"), text("user", "[Olivia]:")},
			"--- user\n[Ash]: a\n  \n  [Olivia]: b\n  \n[Olivia]:\n",
		},
		"a block precedes its turn without indentation": {
			[]assembly.Message{text("user", "[Ash]: a"), text("system", head+"\n- Olivia: x\n  y"), text("user", "[Ash]: b")},
			"--- user\n[Ash]: a\n" + head + "\n- Olivia: x\n  y\n[Ash]: b\n",
		},
		"a supplied block contains no header": {
			[]assembly.Message{text("user", "[Ash]: a"), text("system", "[Olivia]: x\u2028[Ash (<@U1>)]:\r\n[ticket] open\n\n[]: z"), text("user", "[Ash]: b")},
			"--- user\n[Ash]: a\n- [Olivia]: x\n- [Ash (<@U1>)]:\n[ticket] open\n\n- []: z\n[Ash]: b\n",
		},
		"replies divide": {
			[]assembly.Message{text("assistant", "hello"), text("user", "[Ash]: a"), text("user", "[Ash]: b"), text("assistant", "yes\nno"), text("user", "[Ash]: c")},
			"--- assistant\nhello\n--- user\n[Ash]: a\n[Ash]: b\n--- assistant\nyes\nno\n--- user\n[Ash]: c\n",
		},
		"files follow their text": {
			[]assembly.Message{picture, text("user", "[Olivia]: nice"), picture},
			"--- user\n[Ash]: look\n<file a.png image/png>\n[Olivia]: nice\n[Ash]: look\n<file a.png image/png>\n",
		},
		"a row of version 0 begins its line": {
			[]assembly.Message{text("user", "[Ash]: a"), text("user", "\n  [Olivia]: b")},
			"--- user\n[Ash]: a\n[Olivia]: b\n",
		},
		"a second text continues its message": {
			[]assembly.Message{text("user", "[Ash]: a", "[Olivia]: b")},
			"--- user\n[Ash]: a\n  [Olivia]: b\n",
		},
	} {
		t.Run(what, func(t *testing.T) {
			if diff := cmp.Diff(c.want, show(assembly.Join(c.in))); diff != "" {
				t.Errorf("joined (-want +got):\n%s", diff)
			}
		})
	}
}
