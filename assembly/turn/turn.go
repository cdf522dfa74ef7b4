// Package turn takes a thread's next messages, asks the agent, and commits the answer
// for delivery.
package turn

import (
	"context"
	"errors"

	"parley/assembly"
	"parley/ingest/stream"
)

// ErrLater is the error of an agent that has taken the run and will answer it later. An error that wraps it and has a Pause is
// followed by another attempt after that time.
var ErrLater = errors.New("the agent answers later")

// Agent answers a turn.
type Agent interface {
	// Run asks the agent and emits its messages in order. It returns when the agent
	// has finished, when emit fails, or when ctx ends, and calls emit from one
	// goroutine only. A run that ends without a final text is an error, unless the
	// agent said explicitly that it has none, or ErrLater. Run is called concurrently for
	// different threads. An agent outside the process must call Prove before its input leaves.
	Run(ctx context.Context, input assembly.Input, emit func(stream.Message) error) error
}

// TakesGiven is implemented by an Agent whose protocol has a place for parts of the request of a client of
// the run protocol: it takes these parts from assembly.Input.Given. The other parts are among the messages.
type TakesGiven interface {
	TakesGiven() assembly.Native
}

// TakesDocuments is implemented by an Agent that may get documents, and not their names alone.
type TakesDocuments interface {
	TakesDocuments() bool
}

// KeepsSessions is implemented by an Agent whose protocol has conversations of its own. It gets Session and KeepSession of assembly.Input.
// An empty Session begins a new conversation, even if the agent remembers another one: a person asked for that, or words of the thread were forgotten.
type KeepsSessions interface {
	KeepsSessions()
}

// WorksOn is implemented by an Agent of KeepsSessions whose server works on after ErrLater. Abandon tells the server that nobody wants
// the work of a run, which may have ended, if it is the last one in one of these sessions. It is called while no Run is for their thread.
type WorksOn interface {
	Abandon(ctx context.Context, run string, sessions []string)
}

// OffersChoices is implemented by an Agent with settings that people may choose in a thread, such as its model. It gets Choices and Offer of
// assembly.Input.
type OffersChoices interface {
	OffersChoices()
}

// Learner is implemented by an Agent that learns in which form its server accepts requests. Learnt says
// it in words for the operator, a note each. It is called concurrently.
type Learner interface {
	Learnt() []string
}

// AnswersLater is implemented by an Agent whose Run can return ErrLater. Later emits the messages of the
// answer that has come since. It fails as Run does.
type AnswersLater interface {
	Later(input assembly.Input, answer stream.Message, emit func(stream.Message) error) error
}
