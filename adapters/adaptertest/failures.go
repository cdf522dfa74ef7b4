package adaptertest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"parley/adapters"
	"parley/ingest/event"
)

// failurePromises are the promises about failed calls that change something on the platform.
var failurePromises = []promise{
	{"a failed call reports its effect", failuresAreClassified},
	{"a refused connection has no effect", refusedConnectionIsNotSent},
	{"a call that the platform read but did not answer is unclear", stuckIsUnclear},
	{"a call writes nothing after the end of its context", endedContextIsNotSent},
	{"without the platform every call fails, and no error contains a secret", errorsHideSecrets},
}

// arguments are the arguments of the operations. Each operation succeeds with them.
type arguments struct {
	post    adapters.Post
	message string // a post of ours
	stream  string // an open stream of ours; empty if the platform has none
	sign    adapters.Sign
}

// operation is a call that changes something on the platform.
type operation struct {
	call Call
	do   func(ctx context.Context, p arguments) error
}

// prepare creates new arguments.
func (s *fixture) prepare() arguments {
	s.t.Helper()
	question, to := s.thread(s.Room.ID, "a question")
	s.prepared++
	key := fmt.Sprint("p", s.prepared)
	p := arguments{
		post: s.reply(key+"a", to),
		sign: adapters.Sign{To: to, Message: question.event.Message.ExternalID},
	}
	p.message = s.send(p.post)
	if _, ok := s.Adapter.(adapters.Streamer); ok {
		p.stream = s.beginStream(p.post)
	}
	p.post.Key = key + "b"
	return p
}

// operations returns all operations that the adapter supports.
func (s *fixture) operations() []operation {
	sender := ability[adapters.Sender](s)
	all := []operation{
		{Post, func(ctx context.Context, p arguments) error { _, err := sender.Send(ctx, p.post); return err }},
		{Upload, func(ctx context.Context, p arguments) error {
			_, err := sender.Send(ctx, s.withFile(p.post, []byte("content")))
			return err
		}},
	}
	if a, ok := s.Adapter.(adapters.Editor); ok {
		all = append(all,
			operation{Edit, func(ctx context.Context, p arguments) error { return a.Edit(ctx, p.message, p.post) }},
			operation{Remove, func(ctx context.Context, p arguments) error { return a.Remove(ctx, p.message, p.post) }})
	}
	if a, ok := s.Adapter.(adapters.Streamer); ok {
		all = append(all,
			operation{Begin, func(ctx context.Context, p arguments) error { _, err := a.Begin(ctx, p.post); return err }},
			operation{Append, func(ctx context.Context, p arguments) error { return a.Append(ctx, p.stream, p.post, "more") }},
			operation{End, func(ctx context.Context, p arguments) error { return a.End(ctx, p.stream, p.post, "more") }})
	}
	if a, ok := s.Adapter.(adapters.Ephemeral); ok {
		all = append(all, operation{PostEphemeral, func(ctx context.Context, p arguments) error { return a.PostEphemeral(ctx, p.post) }})
	}
	if a, ok := s.Adapter.(adapters.WorkingIndicator); ok {
		all = append(all,
			operation{ShowWorking, func(ctx context.Context, p arguments) error { return a.ShowWorking(ctx, p.sign) }},
			operation{ClearWorking, func(ctx context.Context, p arguments) error { return a.ClearWorking(ctx, p.sign) }})
	}
	return all
}

// fileOf returns a file with the content.
func fileOf(content []byte) *adapters.File {
	return &adapters.File{Name: "a \"b\" ü.txt", MimeType: "text/plain", Size: int64(len(content)),
		Open: func(context.Context) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }}
}

func failuresAreClassified(s *fixture) {
	s.start()
	s.require(s.Fault != nil, "faults")
	operations := s.operations()
	var prepared []arguments
	for _, a := range operations {
		s.must(a.do(s.ctx, s.prepare()))
		for _, failure := range []Failure{Denied, Broken, BrokenLate, Lost, LostLate} {
			p := s.prepare()
			if s.Fault(a.call, failure) != nil {
				s.checkFailure(a, p, failure)
			}
		}
		prepared = append(prepared, s.prepare())
	}
	for i, a := range operations { // last, because a method may rest afterwards
		if s.Fault(a.call, Limited) != nil {
			s.checkFailure(a, prepared[i], Limited)
		}
	}
}

// checkFailure runs an operation that fails, and checks its error and its effect.
func (s *fixture) checkFailure(a operation, p arguments, failure Failure) {
	s.t.Helper()
	want := map[Failure]adapters.SendFailure{Limited: adapters.RateLimited, Denied: adapters.Permanent}
	class, definite := want[failure]
	if !definite {
		class = adapters.Unclear
	}
	wait := time.Duration(0)
	if failure == Limited {
		wait = Wait
	}
	before := len(s.Shown(p.post.To))
	failed := s.fails(a.do(s.ctx, p), class, "%s, %s", a.call, failure)
	if failed.RetryAfter > wait || failed.RetryAfter <= 0 && wait > 0 { // a part of a method's wait may be over
		s.t.Errorf("%s, %s: RetryAfter is %v, want at most %v", a.call, failure, failed.RetryAfter, wait)
	}
	if now := len(s.Shown(p.post.To)); definite && now != before {
		s.t.Errorf("%s, %s: %d new posts", a.call, failure, now-before)
	}
}

func refusedConnectionIsNotSent(s *fixture) {
	s.require(s.Close != nil, "way to close")
	to := adapters.Address{Channel: s.Room.ID}
	p := arguments{
		post: adapters.Post{Key: "k1", To: to, Text: "hello", Asker: s.Asker.ID, NotBefore: s.started},
		sign: adapters.Sign{To: to, Message: "none"},
	}
	s.Close()
	for _, a := range s.operations() {
		if a.call == Post || a.call == Upload || a.call == PostEphemeral {
			s.fails(a.do(s.ctx, p), adapters.NotSent, "%s", a.call)
		}
	}
}

func stuckIsUnclear(s *fixture) {
	s.start()
	s.require(s.Fault != nil, "faults")
	for _, a := range s.operations() {
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

// expired is a context whose Err already reports an error while its Done channel is still open,
// as for every context at the moment of its cancellation.
type expired struct{ context.Context }

// Done implements context.Context.
func (expired) Done() <-chan struct{} { return nil }

// Err implements context.Context.
func (expired) Err() error { return context.DeadlineExceeded }

func endedContextIsNotSent(s *fixture) {
	s.start()
	p, all := s.prepare(), s.operations()
	s.require(s.Calls != nil && s.Close != nil, "count of calls")
	before := s.Calls()
	ended := s.ended()
	for _, a := range all {
		s.fails(a.do(ended, p), adapters.NotSent, "%s", a.call)
		s.fails(a.do(expired{s.ctx}, p), adapters.NotSent, "%s, before Done", a.call)
	}
	s.Close()
	if now := s.Calls(); now != before {
		s.t.Errorf("the adapter wrote %d calls", now-before)
	}
}

// errorsHideSecrets makes all calls that read. newFixture checks the recorded errors at the
// end.
func errorsHideSecrets(s *fixture) {
	s.require(s.Close != nil, "way to close")
	s.Close()
	for name, err := range s.reads() {
		if s.record(err) == nil {
			s.t.Errorf("%s succeeded", name)
		}
	}
	if _, ok := s.Adapter.(adapters.Connector); !ok {
		return
	}
	select {
	case <-s.output.wrote: // by the calls above
	default:
	}
	r := s.run()
	select {
	case <-r.ended:
	case <-s.output.wrote: // Run is still trying
	case <-s.ctx.Done():
		s.t.Error("Run neither returned an error nor logged one")
	}
	if len(r.ups) != 0 {
		s.t.Error("the adapter called Up without a platform")
	}
}

// reads makes all calls that read, and returns their errors.
func (s *fixture) reads() map[string]error {
	post := adapters.Post{Key: "k1", To: adapters.Address{Channel: s.Room.ID}, NotBefore: s.started}
	errs := map[string]error{}
	if a, ok := s.Adapter.(adapters.Finder); ok {
		_, _, errs["Find"] = a.Find(s.ctx, post)
	}
	if a, ok := s.Adapter.(adapters.Lister); ok {
		_, errs["List"] = a.List(s.ctx, post)
	}
	if a, ok := s.Adapter.(adapters.StreamFinder); ok {
		_, errs["FindStream"] = a.FindStream(s.ctx, post)
	}
	if a, ok := s.Adapter.(adapters.Fetcher); ok {
		_, errs["Fetch"] = a.Fetch(s.ctx, event.Attachment{ID: "1"})
	}
	if a, ok := s.Adapter.(adapters.Namer); ok {
		_, errs["LookupUser"] = a.LookupUser(s.ctx, s.Asker.ID)
	}
	if a, ok := s.Adapter.(adapters.Backfiller); ok {
		_, errs["Channels"] = a.Channels(s.ctx)
		gap := event.Gap{Channel: s.Room.ID, From: s.started, Until: s.started.Add(time.Hour)}
		_, errs["ReadChannel"] = a.ReadChannel(s.ctx, adapters.Reading{Gap: gap, Messages: 1})
	}
	return errs
}
