package adaptertest

import (
	"errors"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/adapters"
)

// ofRunning is what holds for a Runner.
var ofRunning = []promise{
	{"Up tells who we are, and again that events can arrive after each gap", upAfterEachGap},
	{"Run returns within a second of its context's end, and takes nothing then", runEnds},
	{"Run returns also while the platform does not answer", runEndsWhileStuck},
	{"refused credentials are refused at the start", refusedAtTheStart},
	{"refused credentials are refused later", refusedLater},
	{"what passes by itself is no refusal", troublePasses},
}

// soon is how long Run may go on when its context has ended.
const soon = time.Second

func upAfterEachGap(s *stage) {
	able[adapters.Runner](s)
	r := s.begin()
	if diff := cmp.Diff(s.Self, r.up()); diff != "" {
		s.t.Error(diff)
	}
	s.needs(s.Cut != nil, "connection to cut")
	for range 3 {
		s.Cut()
		if diff := cmp.Diff(s.Self, r.up()); diff != "" {
			s.t.Error(diff)
		}
		s.says(adapters.Address{Channel: s.Room.ID}, "still here?")
	}
	if len(r.ups) != 0 {
		s.t.Error("up without a gap")
	}
}

func runEnds(s *stage) {
	able[adapters.Runner](s)
	r := s.play()
	s.says(adapters.Address{Channel: s.Room.ID}, "hi")
	r.endsSoon()
	if s.Hook != nil {
		return // whose server the daemon ends
	}
	taken := len(s.inbox.all())
	if late := s.Say(adapters.Address{Channel: s.Room.ID}, "too late"); late.Acknowledged != nil {
		if acked, err := late.Acknowledged(s.ctx); acked || err != nil {
			s.t.Errorf("acknowledged: %v, %v", acked, err)
		}
	}
	if now := len(s.inbox.all()); now != taken {
		s.t.Errorf("%d more envelopes were taken", now-taken)
	}
}

// endsSoon ends the run's context.
func (r *run) endsSoon() {
	r.s.t.Helper()
	begun := time.Now()
	r.stop()
	if took := time.Since(begun); took > soon {
		r.s.t.Errorf("Run went on for %v", took)
	}
	if err := r.end(); err != nil {
		r.s.t.Errorf("Run ended with %v", err)
	}
}

func runEndsWhileStuck(s *stage) {
	able[adapters.Runner](s)
	s.needs(s.Fault != nil, "faults")
	for _, call := range []Call{Who, Connect} {
		met := s.Fault(call, Stuck)
		if met == nil {
			continue
		}
		r := s.again()
		select {
		case <-met:
		case <-s.ctx.Done():
			s.t.Fatalf("%s was not called", call)
		}
		r.endsSoon()
	}
}

func refusedAtTheStart(s *stage) {
	able[adapters.Runner](s)
	s.needs(s.Revoke != nil, "credentials to take away")
	s.Revoke()
	r := s.begin()
	s.refused(r.end())
	if len(r.ups) != 0 {
		s.t.Error("up, and refused")
	}
}

// refused checks an error that only the operator can mend.
func (s *stage) refused(err error) {
	s.t.Helper()
	var refused *adapters.RefusedError
	if !errors.As(s.heard(err), &refused) || refused.Hint == "" {
		s.t.Errorf("%v is no refusal with a hint", err)
	}
}

func refusedLater(s *stage) {
	able[adapters.Runner](s)
	s.needs(s.Revoke != nil && s.Cut != nil, "connection whose credentials can be taken away")
	r := s.play()
	s.Revoke()
	s.Cut()
	s.refused(r.end())
}

func troublePasses(s *stage) {
	able[adapters.Runner](s)
	s.needs(s.Fault != nil, "faults")
	for _, c := range []struct {
		call    Call
		trouble Trouble
	}{{Who, Broken}, {Who, Lost}, {Who, Limited}, {Connect, Broken}, {Connect, Lost}} {
		if s.Fault(c.call, c.trouble) == nil {
			continue
		}
		s.comesUp(c.call, c.trouble)
	}
}

// comesUp runs the adapter, again after each error as the supervisor does, until it
// is up.
func (s *stage) comesUp(call Call, trouble Trouble) {
	s.t.Helper()
	for {
		r := s.again()
		select {
		case <-r.ups:
			r.endsSoon()
			return
		case err := <-r.ended:
			var refused *adapters.RefusedError
			if err == nil || errors.As(err, &refused) {
				s.t.Errorf("%s, %s: %v", call, trouble, err)
				return
			}
		case <-s.ctx.Done():
			s.t.Fatalf("%s, %s: not up again\n%s", call, trouble, s.words)
		}
	}
}
