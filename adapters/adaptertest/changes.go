package adaptertest

import "parley/adapters"

// ofChanges is what holds for an Editor.
var ofChanges = []promise{
	{"an edited post shows the text, however often it is edited", editShowsTheText},
	{"an edited post keeps its key", editKeepsTheKey},
	{"a removed post is gone, however often it is removed", removeIsFinal},
	{"a post that is gone can't be edited", goneIsPermanent},
	{"an edit or a removal may be repeated after any failure", changesMayBeRepeated},
}

func editShowsTheText(s *stage) {
	editor := able[adapters.Editor](s)
	s.play()
	post := s.asks(s.Room.ID, "k1")
	id := s.send(post)
	for _, text := range []string{"other words", "other words", "the last words"} {
		post.Text = text
		s.must(editor.Edit(s.ctx, id, post))
		if shown := s.Shown(post.To); len(shown) != 1 || shown[0].ID != id || shown[0].Text != text {
			s.t.Errorf("%+v, want %q as %s", shown, text, id)
		}
	}
}

func editKeepsTheKey(s *stage) {
	editor, finder := able[adapters.Editor](s), able[adapters.Finder](s)
	s.play()
	post := s.asks(s.Room.ID, "k1")
	id := s.send(post)
	post.Text = "other words"
	s.must(editor.Edit(s.ctx, id, post))
	got, found, err := finder.Find(s.ctx, post)
	if s.must(err); got != id || !found {
		s.t.Errorf("found %q, want %q", got, id)
	}
}

func removeIsFinal(s *stage) {
	editor := able[adapters.Editor](s)
	s.play()
	post := s.asks(s.Room.ID, "k1")
	id := s.send(post)
	for range 2 {
		s.must(editor.Remove(s.ctx, id, post))
		if shown := s.Shown(post.To); len(shown) != 0 {
			s.t.Errorf("%+v", shown)
		}
	}
}

func goneIsPermanent(s *stage) {
	editor := able[adapters.Editor](s)
	s.play()
	post := s.asks(s.Room.ID, "k1")
	id := s.send(post)
	s.must(editor.Remove(s.ctx, id, post))
	s.fails(editor.Edit(s.ctx, id, post), adapters.Permanent, "a post that is gone")
	s.fails(editor.Edit(s.ctx, "no id", post), adapters.Permanent, "what is no id")
}

func changesMayBeRepeated(s *stage) {
	editor := able[adapters.Editor](s)
	s.play()
	s.needs(s.Fault != nil, "faults")
	post := s.asks(s.Room.ID, "k1")
	id := s.send(post)
	post.Text = "other words"
	for _, trouble := range []Trouble{Limited, Broken, BrokenLate, Lost, LostLate} {
		if s.Fault(Edit, trouble) != nil && s.heard(editor.Edit(s.ctx, id, post)) == nil {
			s.t.Errorf("an edit with %s succeeded", trouble)
		}
	}
	s.must(editor.Edit(s.ctx, id, post))
	if shown := s.Shown(post.To); len(shown) != 1 || shown[0].Text != post.Text {
		s.t.Errorf("%+v", shown)
	}
	for _, trouble := range []Trouble{Limited, Broken, Lost, LostLate} {
		if s.Fault(Remove, trouble) != nil && s.heard(editor.Remove(s.ctx, id, post)) == nil {
			s.t.Errorf("a removal with %s succeeded", trouble)
		}
	}
	s.must(editor.Remove(s.ctx, id, post))
	if shown := s.Shown(post.To); len(shown) != 0 {
		s.t.Errorf("%+v", shown)
	}
}
