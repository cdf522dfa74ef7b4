package deliver

import (
	"context"
	"time"

	"parley/adapters"
	"parley/ingest/journal"
)

// signAfter is how long a run goes on before people are shown that it does.
const signAfter = 500 * time.Millisecond

// signing is a call that shows the sign of work.
type signing struct {
	ended chan struct{} // closed
	clear bool          // its end was clear; to be read once it has ended
}

// sign shows that the agent is at work, if its run takes a moment. The run's end
// takes the sign away, whatever that end is, for which it stands in the journal
// before the call.
func (s *Showing) sign(ctx context.Context, signer adapters.Signer) {
	select {
	case <-ctx.Done():
		return
	case <-s.stopped:
		return
	case <-time.After(signAfter):
	}
	if len(s.run.Messages) == 0 {
		return
	}
	mark := adapters.Sign{Thread: s.run.ThreadKey, To: s.to.Address, Message: s.signed()}
	timeout := s.platform.Limits.Timeout
	call, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	work := &signing{ended: make(chan struct{})}
	defer close(work.ended) // whatever happens: the sign is taken away by who waits for it
	if !s.write(func() error {
		s.outbox.signs(s.run.Row, work)
		return s.outbox.Journal.MarkSigned(context.WithoutCancel(ctx), s.lease, s.run, mark.Message, timeout+readBackAfter)
	}) {
		return
	}
	err := func() (err error) {
		defer s.recover(&err)
		return signer.Sign(call, mark)
	}()
	work.clear = !isFailure(err, adapters.Unclear)
	if err != nil {
		s.outbox.Log.Debug("the sign of work can't be shown", "workspace", s.run.Workspace, "err", err)
	}
}

// signed is the message with the sign of work: the turn's last one. Where an earlier
// attempt has put it at another one that is still there, it stays: the run has one
// sign, and its end takes that away.
func (s *Showing) signed() string {
	for _, m := range s.run.Messages {
		if m.ExternalID == s.run.Sign {
			return s.run.Sign
		}
	}
	return s.run.Messages[len(s.run.Messages)-1].ExternalID
}

// signs remembers the call that shows a run's sign of work; bounded like the pieces.
func (o *Outbox) signs(run int64, work *signing) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.signed) >= maxPieces {
		clear(o.signed)
	}
	o.signed[run] = work
}

// unsignable is when a run's sign of work can't appear any more; zero where it can't
// now. It waits for a call under way.
func (o *Outbox) unsignable(d *journal.Delivery) time.Time {
	o.mu.Lock()
	work := o.signed[d.Run]
	delete(o.signed, d.Run)
	o.mu.Unlock()
	if work != nil {
		<-work.ended
		if work.clear {
			return time.Time{}
		}
	}
	return d.SendBy
}
