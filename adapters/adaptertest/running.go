package adaptertest

import (
	"errors"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/adapters"
)

// runnerPromises are the promises of a Runner.
var runnerPromises = []promise{
	{"Up reports our identity, at the start and after each gap", upAfterEachGap},
	{"Run returns soon after the end of its context, and accepts nothing afterwards", runEnds},
	{"Run returns although the platform does not answer", runEndsWhileStuck},
	{"Run reports credentials that are refused at the start", refusedAtStart},
	{"Run reports credentials that are refused later", refusedLater},
	{"Run reports no refusal for a transient failure", transientIsNotRefused},
}

// stopWithin bounds the duration of Run after the end of its context. It exceeds the second of
// the contract, because a busy machine delays a stop.
const stopWithin = 5 * time.Second

func upAfterEachGap(s *fixture) {
	ability[adapters.Connector](s)
	r := s.serve()
	if diff := cmp.Diff(s.Self, r.up()); diff != "" {
		s.t.Error(diff)
	}
	s.require(s.Cut != nil, "connection to cut")
	for range 3 {
		s.Cut()
		if diff := cmp.Diff(s.Self, r.up()); diff != "" {
			s.t.Error(diff)
		}
		s.say(adapters.Address{Channel: s.Room.ID}, "still here?")
	}
	if len(r.ups) != 0 {
		s.t.Error("Up was called without a gap")
	}
}

func runEnds(s *fixture) {
	ability[adapters.Connector](s)
	r := s.start()
	s.say(adapters.Address{Channel: s.Room.ID}, "hi")
	r.stopSoon()
	if s.Hook != nil {
		return // the daemon stops the hook's server
	}
	taken := len(s.inbox.all())
	if late := s.Say(adapters.Address{Channel: s.Room.ID}, "too late"); late.Acknowledged != nil {
		if acked, err := late.Acknowledged(s.ctx); acked || err != nil {
			s.t.Errorf("acknowledged: %v, %v", acked, err)
		}
	}
	if now := len(s.inbox.all()); now != taken {
		s.t.Errorf("Accept stored %d more envelopes", now-taken)
	}
}

// stopSoon ends the run's context, and checks that Run returns in time.
func (r *run) stopSoon() {
	r.s.t.Helper()
	started := time.Now()
	r.stop()
	if took := time.Since(started); took > stopWithin {
		r.s.t.Errorf("Run returned after %v", took)
	}
	if err := r.end(); err != nil {
		r.s.t.Errorf("Run returned %v", err)
	}
}

func runEndsWhileStuck(s *fixture) {
	ability[adapters.Connector](s)
	s.require(s.Fault != nil, "faults")
	for _, call := range []Call{Who, Connect} {
		met := s.Fault(call, Stuck)
		if met == nil {
			continue
		}
		r := s.run()
		select {
		case <-met:
		case <-s.ctx.Done():
			s.t.Fatalf("the adapter made no call of kind %q", call)
		}
		r.stopSoon()
	}
}

func refusedAtStart(s *fixture) {
	ability[adapters.Connector](s)
	s.require(s.Revoke != nil, "credentials to revoke")
	s.Revoke()
	r := s.serve()
	s.refused(r.end())
	if len(r.ups) != 0 {
		s.t.Error("Up was called although the credentials were refused")
	}
}

// refused checks that err is a RefusedError with a hint for the operator.
func (s *fixture) refused(err error) {
	s.t.Helper()
	var refused *adapters.RefusedError
	if !errors.As(s.record(err), &refused) || refused.Hint == "" {
		s.t.Errorf("%v is not a RefusedError with a hint", err)
	}
}

func refusedLater(s *fixture) {
	ability[adapters.Connector](s)
	s.require(s.Revoke != nil && s.Cut != nil, "connection with credentials to revoke")
	r := s.start()
	s.Revoke()
	s.Cut()
	s.refused(r.end())
}

func transientIsNotRefused(s *fixture) {
	ability[adapters.Connector](s)
	s.require(s.Fault != nil, "faults")
	for _, c := range []struct {
		call    Call
		failure Failure
	}{{Who, Broken}, {Who, Lost}, {Connect, Broken}, {Connect, Lost}, {Who, Limited}} {
		if s.Fault(c.call, c.failure) == nil {
			continue
		}
		s.retryUntilUp(c.call, c.failure)
	}
}

// retryUntilUp runs the adapter, and again after each error as the supervisor does, until Up is
// called. After a rate limit it does not wait for Up, because the method may rest.
func (s *fixture) retryUntilUp(call Call, failure Failure) {
	s.t.Helper()
	for {
		r := s.run()
		select {
		case <-r.ups:
			r.stopSoon()
			return
		case err := <-r.ended:
			var refused *adapters.RefusedError
			if err == nil || errors.As(err, &refused) {
				s.t.Errorf("%s, %s: %v", call, failure, err)
				return
			}
			if failure == Limited {
				return
			}
		case <-s.ctx.Done():
			s.t.Fatalf("%s, %s: Up was not called\n%s", call, failure, s.output)
		}
	}
}
