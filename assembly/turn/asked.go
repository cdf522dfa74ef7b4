package turn

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"parley/assembly"
	"parley/ingest/journal/runs"
)

// asked describes the request of an attempt for the journal. It has no messages.
type asked struct {
	BegunAt time.Time
	usage   assembly.Usage
	hash    string // SHA-256 of the input; empty if the agent got none
	input   string // empty if the configuration keeps none
}

// keep notes the messages that the agent gets, in the form in which replay prints them.
func (a *attempt) keep(messages []assembly.Message) error {
	var b bytes.Buffer
	b.WriteByte('[')
	for i, m := range messages {
		text, err := m.MarshalJSON()
		if err != nil {
			return err
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(text)
	}
	b.WriteByte(']')
	sum := sha256.Sum256(b.Bytes())
	a.asked.hash = hex.EncodeToString(sum[:])
	if a.settings.KeepInputs {
		a.asked.input = b.String()
	}
	return nil
}

// measure adds the usage of a request. The end is that of the last one.
func (a *attempt) measure(u assembly.Usage) {
	a.asked.usage = assembly.Usage{Finish: u.Finish, TokensIn: a.asked.usage.TokensIn + u.TokensIn, TokensOut: a.asked.usage.TokensOut + u.TokensOut}
}

// measureOwn takes the usage among the own keys of the answer, for agents whose protocol has no other place for it.
func (a *attempt) measureOwn() {
	if a.asked.usage.TokensIn+a.asked.usage.TokensOut > 0 {
		return
	}
	for _, own := range ownKeys(a.said.own) {
		if own.Key == "usage" {
			a.asked.usage.TokensIn, a.asked.usage.TokensOut = assembly.Tokens(own.Value)
		}
	}
}

// record returns the attempt for the journal. cause is the error that ended it, or nil.
func (a *attempt) record(cause error) runs.Attempt {
	made := runs.Attempt{
		BegunAt: a.asked.BegunAt, FirstAt: a.said.first, Finish: a.asked.usage.Finish, TokensIn: a.asked.usage.TokensIn, TokensOut: a.asked.usage.TokensOut,
		InputSHA256: a.asked.hash, Input: a.asked.input,
	}
	if cause != nil {
		made.Error = cause.Error()
	}
	payer, _ := a.run.Cause()
	own, all := a.settings.Tokens.Of(payer, a.Now())
	made.Pays = append(own, all...)
	return made
}
