package deliver

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"parley/adapters"
	"parley/assembly/turn"
	"parley/ingest/journal"
)

// Showing shows one run while it goes on: that the agent is at work, and its answer
// as far as it has grown. One goroutine shows the text and one the sign of work; both
// end by themselves after Stop. What goes wrong here holds nothing up: the answer
// itself is delivered by the outbox.
type Showing struct {
	outbox   *Outbox
	lease    *journal.Lease
	run      *journal.Run
	platform Platform
	to       destination
	mentions []string

	grower   adapters.Grower   // nil where a growing answer is not shown
	editor   adapters.Editor   // not nil beside a grower
	streamer adapters.Streamer // nil where there are no streams, or not any more

	grown   chan struct{} // holds a value when there is more to show
	stopped chan struct{} // closed by Stop

	writing sync.Mutex  // held over writes to the journal, so that none comes after Stop
	over    atomic.Bool // nothing more is shown

	mu     sync.Mutex
	said   strings.Builder
	fresh  int      // bytes of said that no piece has yet
	pieces []*piece // the last one may still grow
	forced bool     // a piece was ended before its time, since its stream was old
}

var _ turn.Showing = (*Showing)(nil)

// Show implements turn.Outbox. Calls under way end with ctx.
func (o *Outbox) Show(ctx context.Context, lease *journal.Lease, run *journal.Run, mentions []string) (turn.Showing, error) {
	platform, to, err := o.way(run)
	if err != nil {
		return nil, err
	}
	s := &Showing{
		outbox: o, lease: lease, run: run, platform: platform, to: to, mentions: mentions, pieces: []*piece{newPiece("")},
		grown: make(chan struct{}, 1), stopped: make(chan struct{}),
	}
	if editor, ok := platform.Sender.(adapters.Editor); ok && platform.Limits.Preview != adapters.PreviewOff && platform.Limits.Preview != "" {
		s.editor = editor
		s.grower, _ = platform.Sender.(adapters.Grower)
	}
	if platform.Limits.Preview == adapters.PreviewStream {
		if streamer, ok := platform.Sender.(adapters.Streamer); ok && streamer.Streams(adapters.Post{Thread: run.ThreadKey, To: to.Address, Asker: to.asker}) {
			s.streamer = streamer
		}
	}
	if s.grower != nil {
		o.show(func() { s.show(ctx) })
	}
	if signer, ok := platform.Sender.(adapters.Signer); ok && platform.Limits.Sign {
		o.show(func() { s.sign(ctx, signer) })
	}
	return s, nil
}

// Grow implements turn.Showing.
func (s *Showing) Grow(text string) {
	if s.grower == nil {
		return
	}
	s.mu.Lock()
	s.said.WriteString(text)
	s.fresh += len(text)
	s.mu.Unlock()
	select {
	case s.grown <- struct{}{}:
	default: // it will look anyway
	}
}

// Stop implements turn.Showing.
func (s *Showing) Stop() {
	s.writing.Lock()
	defer s.writing.Unlock()
	if !s.over.Swap(true) {
		close(s.stopped)
	}
}

// Format implements turn.Showing.
func (s *Showing) Format(text string, files []journal.File) []journal.Post {
	if s.platform.Sender == nil {
		return nil
	}
	texts := s.texts(text)
	if len(texts) > 0 && isOver(text, s.platform.Limits.FileOver) {
		texts = texts[:1]
		files = append([]journal.File{{Name: "reply.md", MimeType: "text/markdown", Size: int64(len(text)), Text: text}}, files...)
	}
	posts := s.to.posts(texts)
	for _, file := range files {
		post := s.to.post("")
		post.File = &file
		posts = append(posts, post)
	}
	return posts
}

// isOver says whether a text has more characters than are posted; 0: however many.
func isOver(text string, over int) bool {
	return over > 0 && len(text) > over && utf8.RuneCountInString(text) > over
}

// texts are the posts' texts. Where a post was ended early since its stream was old,
// and the answer is what was shown, the others go on from there.
func (s *Showing) texts(text string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	more, goesOn := strings.CutPrefix(text, s.said.String())
	if !s.forced || !goesOn {
		return s.platform.Sender.Format(text, s.mentions)
	}
	s.takeFresh()
	var texts []string
	for _, p := range s.pieces {
		if p.full {
			texts = append(texts, p.text)
		}
	}
	return append(texts, s.platform.Sender.Format(s.last().source+more, s.mentions)...)
}

// last is the piece that grows.
func (s *Showing) last() *piece { return s.pieces[len(s.pieces)-1] }

// takeFresh gives the last piece what was said since. The caller has the lock.
func (s *Showing) takeFresh() {
	said := s.said.String()
	s.last().source += said[len(said)-s.fresh:]
	s.fresh = 0
}

// recover makes a panic in an adapter an error without a clear end.
func (s *Showing) recover(err *error) {
	if p := recover(); p != nil {
		*err = s.outbox.panicked(p, "workspace", s.run.Workspace, "run", s.run.ID)
	}
}

// write does something to the journal, unless nothing more is to be shown. It returns
// whether that went well; a run that is not ours any more is not shown any more.
func (s *Showing) write(f func() error) bool {
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.over.Load() {
		return false
	}
	err := f()
	if err != nil {
		s.outbox.Log.Debug("a growing answer is not shown now", "run", s.run.ID, "err", err)
	}
	return err == nil
}
