package turn

import (
	"context"
	"errors"
	"time"

	"parley/ingest/journal/messages"
)

// freshFor is the age up to which an agent's input may leave without a look into the store. An
// older one may lack an edit that was acknowledged since, for example if the process or the
// machine stood still.
const freshFor = 200 * time.Millisecond

// errOutdated means that the thread has changed since the agent's input was read, so that the
// input must not leave.
var errOutdated = errors.New("the agent's input is outdated")

type proofKey struct{}

// WithProof returns a context with the proof for the requests of an agent; nil for a request
// that carries no input. See Prove.
func WithProof(ctx context.Context, prove func() error) context.Context {
	return context.WithValue(ctx, proofKey{}, prove)
}

// Prove proves that an input may leave: the thread is still this node's, and its messages are
// those of the input. An Agent calls it directly before it writes a request with an input, with
// the context of Run or Steer. After an error, it must not write the request, and must return an
// error that wraps this one.
func Prove(ctx context.Context) error {
	if prove, _ := ctx.Value(proofKey{}).(func() error); prove != nil {
		return prove()
	}
	return nil
}

// proof returns the proof for an input that was read at a time or later. If the claim may have
// ended or the input is not fresh, the store tells by stands whether the input is current.
func (a *attempt) proof(read time.Time, stands func() (bool, error)) func() error {
	return func() error {
		for known := a.Work.Holds(a.claim); !known || a.Now().Sub(read) > freshFor; known = true {
			read = a.Now()
			switch current, err := stands(); {
			case err != nil:
				return storeError{err}
			case !current:
				return errOutdated
			}
		}
		return nil
	}
}

// proved returns the context of the agent's run, whose input was read when the run began or
// later.
func (a *attempt) proved(ctx context.Context) context.Context {
	return WithProof(ctx, a.proof(a.run.BegunAt, func() (bool, error) { return a.Runs.InputStands(ctx, &a.claim.Claim, a.run) }))
}

// provedMessage returns the context of a call that hands over one message, which was read at a time.
func (a *attempt) provedMessage(ctx context.Context, m *messages.Message, read time.Time) context.Context {
	return WithProof(ctx, a.proof(read, func() (bool, error) { return a.Runs.MessageStands(ctx, &a.claim.Claim, m) }))
}
