// Package turn takes a thread's next messages, asks the agent, and sees the
// answer delivered.
package turn

import (
	"context"

	"parley/assembly"
	"parley/assembly/stream"
)

// Agent answers a turn.
type Agent interface {
	// Run asks the agent and emits what it says, in order. It returns when the
	// agent has finished, when emit fails, or when ctx ends, and calls emit from
	// one goroutine alone. A run that ends without a final text is an error,
	// unless the agent said in so many words that it has none. It is called
	// concurrently for different threads.
	Run(ctx context.Context, input assembly.Input, emit func(stream.Message) error) error
}
