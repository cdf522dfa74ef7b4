package adaptertest

import (
	"bytes"
	"context"
	"io"
	"time"

	"parley/adapters"
	"parley/ingest/event"
)

// ofFailures is what holds for all calls that say something, when they fail.
var ofFailures = []promise{
	{"a failed call says what it has left behind", failuresAreTold},
	{"a refused connection leaves nothing behind", nothingIsSentToNobody},
	{"a call that was read and not answered is unclear", stuckIsUnclear},
	{"nothing is written once the context has ended", nothingIsWrittenLate},
	{"without the platform everything fails, and no error tells a secret", nothingTellsASecret},
}

// props are what the calls are about: each would succeed with them.
type props struct {
	post    adapters.Post
	message string // a post of ours
	stream  string // an open stream of ours; empty where there are none
	sign    adapters.Sign
}

// acts is a call that says something.
type act struct {
	call Call
	do   func(ctx context.Context, p props) error
}

// prepare makes new props.
func (s *stage) prepare() props {
	s.t.Helper()
	question := s.says(adapters.Address{Channel: s.Room.ID}, "a question")
	to, err := able[adapters.Sender](s).Address(question.keys.Thread)
	s.must(err)
	p := props{
		post: adapters.Post{Key: "k1", Thread: question.keys.Thread, To: to, Text: "hello", Asker: s.Asker.ID, NotBefore: s.begun},
		sign: adapters.Sign{Thread: question.keys.Thread, To: to, Message: question.event.Message.ExternalID},
	}
	p.message = s.send(p.post)
	if streamer, ok := s.Adapter.(adapters.Streamer); ok {
		p.stream, err = streamer.Begin(s.ctx, p.post)
		s.must(err)
	}
	p.post.Key = "k2"
	return p
}

// acts are all that the adapter can do.
func (s *stage) acts() []act {
	sender := able[adapters.Sender](s)
	all := []act{
		{Post, func(ctx context.Context, p props) error { _, err := sender.Send(ctx, p.post); return err }},
		{Upload, func(ctx context.Context, p props) error {
			p.post.File = fileOf([]byte("content"))
			_, err := sender.Send(ctx, p.post)
			return err
		}},
	}
	if a, ok := s.Adapter.(adapters.Editor); ok {
		all = append(all,
			act{Edit, func(ctx context.Context, p props) error { return a.Edit(ctx, p.message, p.post) }},
			act{Remove, func(ctx context.Context, p props) error { return a.Remove(ctx, p.message, p.post) }})
	}
	if a, ok := s.Adapter.(adapters.Streamer); ok {
		all = append(all,
			act{Begin, func(ctx context.Context, p props) error { _, err := a.Begin(ctx, p.post); return err }},
			act{Append, func(ctx context.Context, p props) error { return a.Append(ctx, p.stream, p.post, "more") }},
			act{End, func(ctx context.Context, p props) error { return a.End(ctx, p.stream, p.post, "more") }})
	}
	if a, ok := s.Adapter.(adapters.Ephemeral); ok {
		all = append(all, act{Tell, func(ctx context.Context, p props) error { return a.PostEphemeral(ctx, p.post) }})
	}
	if a, ok := s.Adapter.(adapters.WorkingIndicator); ok {
		all = append(all,
			act{Sign, func(ctx context.Context, p props) error { return a.ShowWorking(ctx, p.sign) }},
			act{Unsign, func(ctx context.Context, p props) error { return a.ClearWorking(ctx, p.sign) }})
	}
	return all
}

// fileOf is a file with the content.
func fileOf(content []byte) *adapters.File {
	return &adapters.File{Name: "a.txt", MimeType: "text/plain", Size: int64(len(content)),
		Open: func(context.Context) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }}
}

func failuresAreTold(s *stage) {
	s.play()
	s.needs(s.Fault != nil, "faults")
	for _, a := range s.acts() {
		s.must(a.do(s.ctx, s.prepare()))
		for _, trouble := range []Trouble{Limited, Denied, Broken, BrokenLate, Lost, LostLate} {
			p := s.prepare()
			if s.Fault(a.call, trouble) != nil {
				s.leaves(a, p, trouble)
			}
		}
	}
}

// leaves makes a call that fails, and looks at what is there then.
func (s *stage) leaves(a act, p props, trouble Trouble) {
	s.t.Helper()
	want := map[Trouble]adapters.SendFailure{Limited: adapters.RateLimited, Denied: adapters.Permanent}
	failure, definite := want[trouble]
	if !definite {
		failure = adapters.Unclear
	}
	wait := time.Duration(0)
	if trouble == Limited {
		wait = Wait
	}
	before := len(s.Shown(p.post.To))
	failed := s.fails(a.do(s.ctx, p), failure, "%s, %s", a.call, trouble)
	if failed.RetryAfter != wait {
		s.t.Errorf("%s, %s: again after %v, want %v", a.call, trouble, failed.RetryAfter, wait)
	}
	if now := len(s.Shown(p.post.To)); definite && now != before {
		s.t.Errorf("%s, %s: %d posts more", a.call, trouble, now-before)
	}
}

func nothingIsSentToNobody(s *stage) {
	s.needs(s.Close != nil, "way to be gone")
	to := adapters.Address{Channel: s.Room.ID}
	p := props{
		post: adapters.Post{Key: "k1", To: to, Text: "hello", Asker: s.Asker.ID, NotBefore: s.begun},
		sign: adapters.Sign{To: to, Message: "none"},
	}
	s.Close()
	for _, a := range s.acts() {
		if a.call == Post || a.call == Upload || a.call == Tell {
			s.fails(a.do(s.ctx, p), adapters.NotSent, "%s", a.call)
		}
	}
}

func stuckIsUnclear(s *stage) {
	s.play()
	s.needs(s.Fault != nil, "faults")
	for _, a := range s.acts() {
		p := s.prepare()
		ctx, cancel := context.WithCancel(s.ctx)
		if met := s.Fault(a.call, Stuck); met != nil {
			go func() {
				<-met
				cancel()
			}()
			s.fails(a.do(ctx, p), adapters.Unclear, "%s", a.call)
		}
		cancel()
	}
}

// over is a context that has ended and of which nobody has been told yet, as any
// context is for a moment.
type over struct{ context.Context }

// Done implements context.Context.
func (over) Done() <-chan struct{} { return nil }

// Err implements context.Context.
func (over) Err() error { return context.DeadlineExceeded }

func nothingIsWrittenLate(s *stage) {
	s.play()
	p, all := s.prepare(), s.acts()
	s.needs(s.Calls != nil && s.Close != nil, "way to count its calls")
	before := s.Calls()
	ended, cancel := context.WithCancel(s.ctx)
	cancel()
	for _, a := range all {
		s.fails(a.do(ended, p), adapters.NotSent, "%s", a.call)
		s.fails(a.do(over{s.ctx}, p), adapters.NotSent, "%s, before anybody was told", a.call)
	}
	s.Close()
	if now := s.Calls(); now != before {
		s.t.Errorf("%d calls were written", now-before)
	}
}

// nothingTellsASecret makes all calls that read; set looks at the words.
func nothingTellsASecret(s *stage) {
	s.needs(s.Close != nil, "way to be gone")
	s.Close()
	for name, err := range s.reads() {
		if s.heard(err) == nil {
			s.t.Errorf("%s succeeded", name)
		}
	}
	if _, ok := s.Adapter.(adapters.Runner); !ok {
		return
	}
	r := s.again()
	select {
	case <-r.ended:
	case <-time.After(moment): // it goes on trying
	}
	if len(r.ups) != 0 {
		s.t.Error("up without a platform")
	}
}

// reads is how the calls that read end.
func (s *stage) reads() map[string]error {
	post := adapters.Post{Key: "k1", To: adapters.Address{Channel: s.Room.ID}, NotBefore: s.begun}
	ends := map[string]error{}
	if a, ok := s.Adapter.(adapters.Finder); ok {
		_, _, ends["Find"] = a.Find(s.ctx, post)
	}
	if a, ok := s.Adapter.(adapters.StreamFinder); ok {
		_, ends["FindStream"] = a.FindStream(s.ctx, post)
	}
	if a, ok := s.Adapter.(adapters.Fetcher); ok {
		_, ends["Fetch"] = a.Fetch(s.ctx, event.Attachment{ID: "1"})
	}
	if a, ok := s.Adapter.(adapters.Namer); ok {
		_, ends["LookupUser"] = a.LookupUser(s.ctx, s.Asker.ID)
	}
	if a, ok := s.Adapter.(adapters.Backfiller); ok {
		_, ends["Channels"] = a.Channels(s.ctx)
		gap := event.Gap{Channel: s.Room.ID, From: s.begun, Until: s.begun.Add(time.Hour)}
		_, ends["ReadChannel"] = a.ReadChannel(s.ctx, adapters.Reading{Gap: gap, Messages: 1})
	}
	return ends
}
