package adaptertest

import (
	"context"

	"github.com/google/go-cmp/cmp"

	"parley/adapters"
)

// streamPromises are the promises of a Streamer and a StreamFinder.
var streamPromises = []promise{
	{"a stream shows all text that was appended to it", streamShowsAll},
	{"Append fails permanently after the end of a stream", endedIsPermanent},
	{"an edit ends a stream, and a removal removes it", streamsCanBeChanged},
	{"FindStream returns our posts without a key, the oldest first", streamsAreFound},
	{"FindStream fails if its read fails", findStreamFails},
}

// beginStream begins a stream, or skips the test if the platform has none.
func (s *fixture) beginStream(post adapters.Post) (id string) {
	s.t.Helper()
	id, err := ability[adapters.Streamer](s).Begin(s.ctx, post)
	s.must(err)
	return id
}

func streamShowsAll(s *fixture) {
	streamer := ability[adapters.Streamer](s)
	s.start()
	post := s.ask(s.Room.ID, "k1")
	post.Text = "One"
	id := s.beginStream(post)
	for _, text := range []string{" two", " ", "three,", "\n\nfour"} {
		s.must(streamer.Append(s.ctx, id, post, text))
	}
	s.must(streamer.End(s.ctx, id, post, " five."))
	post.Text = "One two three,\n\nfour five."
	s.showsOnly(post, id)
}

func endedIsPermanent(s *fixture) {
	streamer := ability[adapters.Streamer](s)
	s.start()
	post := s.ask(s.Room.ID, "k1")
	id := s.beginStream(post)
	s.must(streamer.End(s.ctx, id, post, ""))
	s.fails(streamer.Append(s.ctx, id, post, "more"), adapters.Permanent, "Append")
	s.fails(streamer.End(s.ctx, id, post, "more"), adapters.Permanent, "End with a text")
	if shown, there := s.shown(post.To, id); !there || shown.Text != post.Text {
		s.t.Errorf("the ended stream shows %+v", shown)
	}
}

func streamsCanBeChanged(s *fixture) {
	streamer, editor := ability[adapters.Streamer](s), ability[adapters.Editor](s)
	s.start()
	post := s.ask(s.Room.ID, "k1")
	edited, removed := s.beginStream(post), s.beginStream(post)
	post.Text = "the whole answer"
	s.must(editor.Edit(s.ctx, edited, post))
	s.must(editor.Remove(s.ctx, removed, post))
	s.showsOnly(post, edited)
	s.fails(streamer.Append(s.ctx, edited, post, "more"), adapters.Permanent, "Append to an edited stream")
	s.fails(streamer.Append(s.ctx, removed, post, "more"), adapters.Permanent, "Append to a removed stream")
}

func streamsAreFound(s *fixture) {
	ability[adapters.Streamer](s)
	finder := ability[adapters.StreamFinder](s)
	s.start()
	post := s.ask(s.Room.ID, "k1")
	s.send(post)
	first := s.beginStream(post)
	if s.Forge != nil {
		s.Forge(post)
	}
	want := []string{first, s.beginStream(post)}
	if s.Fault != nil && s.Fault(Begin, LostLate) != nil {
		_, err := ability[adapters.Streamer](s).Begin(s.ctx, post)
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

func findStreamFails(s *fixture) {
	finder := ability[adapters.StreamFinder](s)
	s.start()
	post := s.ask(s.Room.ID, "k1")
	s.beginStream(post)
	s.readFails(Read, func(ctx context.Context) error {
		_, err := finder.FindStream(ctx, post)
		return err
	})
}
