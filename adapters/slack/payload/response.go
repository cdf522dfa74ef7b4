package payload

import (
	"context"
	"fmt"
	"slices"
	"time"

	"parley/adapters"
	"parley/ingest/event"
)

// ResponsesName is the name of the response URLs in adapters.State.
const ResponsesName = "commands"

// ResponsesFor is the time for which a response URL takes messages.
// https://docs.slack.dev/interactivity/handling-user-interaction#message_responses
const ResponsesFor = 30 * time.Minute

// Response is the response URL of a command.
type Response struct {
	ID   string    `json:"id"` // "command-<id>"
	URL  string    `json:"url"`
	At   time.Time `json:"at"` // when the command arrived
	Used int       `json:"used,omitempty"`
}

// rememberCommand stores the response URL of a command, and forgets those that have ended.
func (p *Payload) rememberCommand(ctx context.Context, envelope event.Envelope, state adapters.State) error {
	if p.interaction.responseURL == "" {
		return nil
	}
	err := adapters.UpdateList(ctx, state, ResponsesName, func(list []Response) []Response {
		if slices.ContainsFunc(list, func(c Response) bool { return c.ID == p.ts }) {
			return list
		}
		list = slices.DeleteFunc(list, func(c Response) bool { return envelope.ReceivedAt.Sub(c.At) > ResponsesFor })
		return append(list, Response{ID: p.ts, URL: p.interaction.responseURL, At: envelope.ReceivedAt})
	})
	if err != nil {
		return fmt.Errorf("store a command: %w", err)
	}
	return nil
}
