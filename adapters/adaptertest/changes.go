package adaptertest

import "parley/adapters"

// editorPromises are the promises of an Editor.
var editorPromises = []promise{
	{"every edit shows the new text", editShowsText},
	{"an edited post keeps its key", editKeepsKey},
	{"a removal can be repeated, and the post stays removed", removeIsFinal},
	{"an edit of a removed post fails permanently", editOfRemovedFails},
	{"an edit or a removal can be repeated after any failure", changesCanBeRepeated},
}

func editShowsText(s *fixture) {
	editor := ability[adapters.Editor](s)
	post, id := s.posted()
	for _, text := range []string{"other words", "other words", "the last words"} {
		post.Text = text
		s.must(editor.Edit(s.ctx, id, post))
		s.showsOnly(post, id)
	}
}

func editKeepsKey(s *fixture) {
	editor, finder := ability[adapters.Editor](s), ability[adapters.Finder](s)
	post, id := s.posted()
	post.Text = "other words"
	s.must(editor.Edit(s.ctx, id, post))
	got, found, err := finder.Find(s.ctx, post)
	if s.must(err); got != id || !found {
		s.t.Errorf("Find returns %q, want %q", got, id)
	}
}

func removeIsFinal(s *fixture) {
	editor := ability[adapters.Editor](s)
	post, id := s.posted()
	for range 2 {
		s.must(editor.Remove(s.ctx, id, post))
		s.showsNothing(post)
	}
}

func editOfRemovedFails(s *fixture) {
	editor := ability[adapters.Editor](s)
	post, id := s.posted()
	s.must(editor.Remove(s.ctx, id, post))
	s.fails(editor.Edit(s.ctx, id, post), adapters.Permanent, "edit of a removed post")
	s.fails(editor.Edit(s.ctx, "no id", post), adapters.Permanent, "edit of an invalid id")
}

func changesCanBeRepeated(s *fixture) {
	editor := ability[adapters.Editor](s)
	post, id := s.posted()
	s.require(s.Fault != nil, "faults")
	post.Text = "other words"
	for failure := range s.failures(Edit, Broken, BrokenLate, Lost, LostLate) {
		if s.record(editor.Edit(s.ctx, id, post)) == nil {
			s.t.Errorf("an edit with %s succeeded", failure)
		}
	}
	s.must(editor.Edit(s.ctx, id, post))
	s.showsOnly(post, id)
	for failure := range s.failures(Remove, Broken, Lost, LostLate) {
		if s.record(editor.Remove(s.ctx, id, post)) == nil {
			s.t.Errorf("a removal with %s succeeded", failure)
		}
	}
	s.must(editor.Remove(s.ctx, id, post))
	s.showsNothing(post)
}
