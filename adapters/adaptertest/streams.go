package adaptertest

import (
	"github.com/google/go-cmp/cmp"

	"parley/adapters"
)

// ofStreams is what holds for a Streamer and a StreamFinder.
var ofStreams = []promise{
	{"a stream shows all that was added to it", streamShowsAll},
	{"nothing can be added to a stream that has ended", endedIsPermanent},
	{"a stream that is edited is ended, and one that is removed is gone", streamsCanBeChanged},
	{"FindStream finds our posts without a key, the oldest first", streamsAreFound},
	{"FindStream fails where it can't tell", findStreamCannotTell},
}

// begins begins a stream; where there are none, the test is skipped.
func (s *stage) begins(post adapters.Post) (id string) {
	s.t.Helper()
	id, err := able[adapters.Streamer](s).Begin(s.ctx, post)
	s.must(err)
	return id
}

func streamShowsAll(s *stage) {
	streamer := able[adapters.Streamer](s)
	s.play()
	post := s.asks(s.Room.ID, "k1")
	post.Text = "One"
	id := s.begins(post)
	for _, text := range []string{" two", " ", "three,", "\n\nfour"} {
		s.must(streamer.Append(s.ctx, id, post, text))
	}
	s.must(streamer.End(s.ctx, id, post, " five."))
	const want = "One two three,\n\nfour five."
	if shown := s.Shown(post.To); len(shown) != 1 || shown[0].ID != id || shown[0].Text != want {
		s.t.Errorf("%+v, want %q as %s", shown, want, id)
	}
}

func endedIsPermanent(s *stage) {
	streamer := able[adapters.Streamer](s)
	s.play()
	post := s.asks(s.Room.ID, "k1")
	id := s.begins(post)
	s.must(streamer.End(s.ctx, id, post, ""))
	s.fails(streamer.Append(s.ctx, id, post, "more"), adapters.Permanent, "Append")
	s.fails(streamer.End(s.ctx, id, post, "more"), adapters.Permanent, "End with a text")
	if shown, there := s.shown(post.To, id); !there || shown.Text != post.Text {
		s.t.Errorf("%+v", shown)
	}
}

func streamsCanBeChanged(s *stage) {
	streamer, editor := able[adapters.Streamer](s), able[adapters.Editor](s)
	s.play()
	post := s.asks(s.Room.ID, "k1")
	edited, removed := s.begins(post), s.begins(post)
	post.Text = "the whole answer"
	s.must(editor.Edit(s.ctx, edited, post))
	s.must(editor.Remove(s.ctx, removed, post))
	if shown := s.Shown(post.To); len(shown) != 1 || shown[0].ID != edited || shown[0].Text != post.Text {
		s.t.Errorf("%+v", shown)
	}
	s.fails(streamer.Append(s.ctx, edited, post, "more"), adapters.Permanent, "what was edited")
	s.fails(streamer.Append(s.ctx, removed, post, "more"), adapters.Permanent, "what was removed")
}

func streamsAreFound(s *stage) {
	able[adapters.Streamer](s)
	finder := able[adapters.StreamFinder](s)
	s.play()
	post := s.asks(s.Room.ID, "k1")
	s.send(post)
	first := s.begins(post)
	if s.Forge != nil {
		s.Forge(post)
	}
	want := []string{first, s.begins(post)}
	if s.Fault != nil && s.Fault(Begin, LostLate) != nil {
		_, err := able[adapters.Streamer](s).Begin(s.ctx, post)
		s.fails(err, adapters.Unclear, "Begin")
		shown := s.Shown(post.To)
		want = append(want, shown[len(shown)-1].ID)
	}
	found, err := finder.FindStream(s.ctx, post)
	s.must(err)
	if diff := cmp.Diff(want, found); diff != "" {
		s.t.Error(diff)
	}
}

func findStreamCannotTell(s *stage) {
	finder := able[adapters.StreamFinder](s)
	s.play()
	post := s.asks(s.Room.ID, "k1")
	s.begins(post)
	s.needs(s.Fault != nil, "faults")
	for _, trouble := range []Trouble{Limited, Denied, Broken, Lost} {
		if s.Fault(Read, trouble) == nil {
			continue
		}
		if found, err := finder.FindStream(s.ctx, post); s.heard(err) == nil {
			s.t.Errorf("%s: found %q", trouble, found)
		}
	}
}
