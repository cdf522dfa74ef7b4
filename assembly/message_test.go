package assembly_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"parley/assembly"
)

func TestMessageJSON(t *testing.T) {
	file := assembly.Part{File: &assembly.File{Name: "a&b.png", MimeType: "image/png", Size: 7, Path: "secret/place"}}
	for _, c := range []struct {
		parts []assembly.Part
		want  string
	}{
		{[]assembly.Part{{Text: "[Olivia (<@U06>)]: a & b\n"}}, `{"role":"user","content":"[Olivia (<@U06>)]: a & b\n"}`},
		{[]assembly.Part{{Text: "<"}, file}, `{"role":"user","content":[{"type":"text","text":"<"},{"type":"binary","mimeType":"image/png","filename":"a&b.png"}]}`},
		{[]assembly.Part{file}, `{"role":"user","content":[{"type":"binary","mimeType":"image/png","filename":"a&b.png"}]}`},
		{[]assembly.Part{{}}, `{"role":"user","content":""}`},
		{nil, `{"role":"user","content":[]}`},
	} {
		m := assembly.Message{Role: assembly.RoleUser, Parts: c.parts}
		var b bytes.Buffer
		encoder := json.NewEncoder(&b)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(m); err != nil {
			t.Fatal(err)
		}
		direct, err := m.MarshalJSON()
		if err != nil || b.String() != c.want+"\n" || string(direct) != c.want {
			t.Errorf("got %s and %s (%v), want %s", b.String(), direct, err, c.want)
		}
	}
}

func TestText(t *testing.T) {
	m := assembly.Message{Parts: []assembly.Part{{Text: "[Ash]: look"}, {File: &assembly.File{Name: "a.png"}}, {Text: "[Olivia]: nice"}}}
	if got, want := m.Text(), "[Ash]: look\n[Olivia]: nice"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
