package deliver

import (
	"context"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"parley/adapters"
	"parley/adapters/markdown"
	"parley/assembly/turn"
	"parley/ingest/card"
	"parley/ingest/event"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/runs"
	"parley/ingest/stream"
	"parley/ingest/wake"
	"parley/ingest/work"
)

// LivePreview shows one run during its work: a sign that the agent works, and the growing
// answer. One goroutine shows the text, from its first piece on, and one the sign of work. Both end
// after Stop. A failure here delays nothing, because the outbox delivers the answer.
type LivePreview struct {
	outbox   *Outbox
	claim    *work.Claim
	run      *runs.Run
	platform Platform
	to       outbox.Post // without a text
	mentions mentioned

	grower   adapters.PartialFormatter // nil if a growing answer is not shown
	editor   adapters.Editor           // set only together with grower
	streamer adapters.Streamer         // nil if streams are not possible, or no longer

	grown   wake.Signal  // is set if there is more to show
	stop    func()       // ends the goroutines, but no call in progress
	stopped func() error // not nil if nothing more is shown
	writing sync.Mutex   // held during writes to the journal, so that Stop waits for them

	mu     sync.Mutex
	starts func() // starts the goroutine of the text; nil if it has begun, or if the text is not shown
	said   strings.Builder
	fresh  int          // the last bytes of said, which no post has yet
	last   *previewPost // the post that grows
	part   int64        // its number, from 0
	note   string       // the last message about the agent's work
	noted  wake.Signal  // is set if the note has changed
}

var _ turn.LivePreview = (*LivePreview)(nil)

// Show implements turn.Outbox. Calls in progress end with ctx.
func (o *Outbox) Show(ctx context.Context, c *work.Claim, run *runs.Run, mentions turn.Mentions, start func(func())) (turn.LivePreview, error) {
	if err := o.findPosts(ctx, run); err != nil {
		return nil, err
	}
	platform, to, err := o.way(run)
	if err != nil {
		return nil, err
	}
	preview, stop := context.WithCancel(ctx)
	s := &LivePreview{
		outbox: o, claim: c, run: run, platform: platform, to: to, mentions: mentionedBy(mentions), last: newPreviewPost(""),
		grown: wake.NewSignal(), noted: wake.NewSignal(), stop: stop, stopped: preview.Err,
	}
	if editor, ok := platform.Sender.(adapters.Editor); ok && platform.Limits.Preview != adapters.PreviewOff && platform.Limits.Preview != "" {
		s.editor = editor
		s.grower, _ = platform.Sender.(adapters.PartialFormatter)
	}
	if platform.Limits.Preview == adapters.PreviewStream {
		if streamer, ok := platform.Sender.(adapters.Streamer); ok && streamer.Streams(o.post(&outbox.Delivery{Post: to})) {
			s.streamer = streamer
		}
	}
	if s.grower != nil {
		s.starts = func() { start(func() { s.show(ctx, preview) }) }
	}
	if signer, ok := platform.Sender.(adapters.WorkingIndicator); ok && platform.Limits.Sign && !run.IsScheduled() {
		start(func() { s.sign(ctx, preview, signer) })
	}
	return s, nil
}

// mentioned are the mentions that take effect in a text.
type mentioned struct {
	tokens []string
	people markdown.People // whom it may mention by name
}

func mentionedBy(mentions turn.Mentions) mentioned {
	list := make([]markdown.Person, len(mentions.Names))
	for i, n := range mentions.Names {
		list[i] = markdown.Person(n)
	}
	return mentioned{mentions.Tokens, markdown.NewPeople(list)}
}

// Grow implements turn.LivePreview.
func (s *LivePreview) Grow(text string) {
	s.mu.Lock()
	s.said.WriteString(text)
	s.fresh += len(text)
	if s.starts != nil {
		s.starts()
		s.starts = nil
	}
	s.mu.Unlock()
	s.grown.Set()
}

// Note implements turn.LivePreview.
func (s *LivePreview) Note(text string) {
	text = event.Line(text, s.platform.Limits.SignText)
	if text == "" {
		return
	}
	s.mu.Lock()
	s.note = text
	s.mu.Unlock()
	s.noted.Set()
}

// Stop implements turn.LivePreview.
func (s *LivePreview) Stop() {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.stop()
}

// Format implements turn.LivePreview.
func (s *LivePreview) Format(text string, ask stream.Ask, shown *card.View, files []outbox.File) ([]outbox.Post, *outbox.Send) {
	if s.platform.Sender == nil {
		return nil, nil
	}
	buttons := s.buttons(ask)
	if buttons == nil {
		text = ask.Numbered(text)
	}
	texts, attached := s.platform.posts(s.to, text, s.mentions, files)
	list := slices.Concat(s.withButtons(texts, buttons), s.platform.card(s.to, shown), attached)
	if !s.outbox.Work.Room(work.Deliveries, "", s.run.Workspace) { // a post must not wait for a worker once it has begun
		return list, nil
	}
	send := bounds(s.platform.Limits)
	return list, &send
}

// buttons returns the buttons of a question; nil if it has no options, or if the platform cannot
// show them.
func (s *LivePreview) buttons(ask stream.Ask) (list []outbox.PostButton) {
	sender, ok := s.platform.Sender.(adapters.ButtonSender)
	if !ok || len(ask.Options) > sender.ButtonLimits().Buttons {
		return nil
	}
	for i, o := range ask.Options {
		if utf8.RuneCountInString(o.Label) > sender.ButtonLimits().Label {
			return nil
		}
		list = append(list, outbox.PostButton{ID: runs.Button(s.run.ID, i), Label: o.Label})
	}
	return list
}

// choose is the text of a post with buttons below a question that is too long for one post.
const choose = "Please choose:"

// withButtons adds the buttons to the last post, or to a further one if it is too long.
func (s *LivePreview) withButtons(list []outbox.Post, buttons []outbox.PostButton) []outbox.Post {
	if buttons == nil {
		return list
	}
	most := s.platform.Sender.(adapters.ButtonSender).ButtonLimits().Text
	if n := len(list); n == 0 || utf8.RuneCountInString(list[n-1].Text) > most {
		list = append(list, posts(s.to, s.platform.Sender.Format(choose, nil))...)
	}
	list[len(list)-1].Buttons = buttons
	return list
}

// isOver reports whether a text has more characters than a reply's posts may; 0 is no
// limit.
func isOver(text string, over int) bool {
	return over > 0 && len(event.Beginning(text, over)) < len(text)
}

// firstPost is more characters than the first post of a text can show.
const firstPost = 20_000

// posts returns the posts of a text, and those of files, at the destination of to. A text that is too long becomes a file
// behind its first post.
func (p Platform) posts(to outbox.Post, text string, mentions mentioned, files []outbox.File) (list, attached []outbox.Post) {
	texts := p.format(text, mentions)
	if isOver(text, p.Limits.FileOver) && strings.TrimSpace(text) != "" {
		texts = texts[:min(len(texts), 1)]
		files = append([]outbox.File{{Name: "reply.md", MimeType: "text/markdown", Size: int64(len(text)), Text: text, Mentions: mentions.tokens}}, files...)
	}
	for _, file := range files {
		file.Name = fileName(file.Name)
		post := to
		post.File = &file
		attached = append(attached, post)
	}
	return posts(to, texts), attached
}

// card returns the posts of a card, which may be nil, at the destination of to. A platform without cards shows its text.
func (p Platform) card(to outbox.Post, shown *card.View) (list []outbox.Post) {
	if shown == nil {
		return nil
	}
	sender, ok := p.Sender.(adapters.CardSender)
	if !ok {
		return posts(to, p.Sender.Format(shown.Markdown(), nil))
	}
	for _, one := range sender.FormatCard(*shown) {
		to.Text, to.Card = one.Text, &one.Card
		list = append(list, to)
	}
	return list
}

// format returns the texts of a text's posts. Of a text that becomes a file only the first
// post is used, so only its beginning is formatted: the time can grow with the square of the
// length.
func (p Platform) format(text string, mentions mentioned) []string {
	if over := p.Limits.FileOver; over > 0 {
		text = event.Beginning(text, max(over, firstPost))
	}
	text, _ = mentions.people.Mention(text, true)
	return p.Sender.Format(text, mentions.tokens)
}

// write runs f, which writes to the journal, unless the preview has ended. It returns
// whether f succeeded.
func (s *LivePreview) write(f func() error) bool {
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.stopped() != nil {
		return false
	}
	err := f()
	if err != nil {
		s.outbox.Log.Debug("a live preview cannot be shown now", "run", s.run.ID, "err", err)
	}
	return err == nil
}
