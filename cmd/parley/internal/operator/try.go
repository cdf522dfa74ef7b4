package operator

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"parley/adapters/replay"
	"parley/assembly/turn"
	"parley/config"
	"parley/ingest/event"
	"parley/ingest/journal/listing"
	"parley/ingest/journal/messages"
)

var tryRoutes = []Route{
	{Pattern: "POST try", Role: config.RoleOperator, serve: func(s *Service, c *Call) (any, error) {
		var t Trial
		if err := c.Bind(&t); err != nil {
			return nil, err
		}
		return s.Try(c.Context(), t)
	}},
}

// Trial is an invented message.
type Trial struct {
	Workspace string `json:"workspace"`
	// Thread is the UUID or the key of a thread that the message continues; empty for a new one.
	Thread string `json:"thread"`
	// Channel is the platform's id of the channel of a new thread; empty for an example.
	Channel string `json:"channel"`
	Direct  bool   `json:"direct"` // the new thread is a direct conversation
	// Sender is the platform's id of the author; empty for an example.
	Sender   string `json:"sender"`
	Name     string `json:"name"` // of the sender; empty for the one that the platform knows
	Mentions bool   `json:"mentions"`
	Text     string `json:"text"`
	// Ask asks the agent; without it, the answer is left out.
	Ask bool `json:"ask"`
}

// Tried is how a message would be treated.
type Tried struct {
	Disposition string           `json:"disposition"`
	Trigger     string           `json:"trigger"` // run, passive, none
	Reason      string           `json:"reason"`
	Error       string           `json:"error"`
	Words       string           `json:"words"`  // tell the reason
	Change      string           `json:"change"` // the key that changes it; empty if none does
	Because     []config.Setting `json:"because"`
	Agent       string           `json:"agent"` // that answers; empty for none
	// Assembled is the input of the agent; none if it is not asked.
	Assembled []InputMessage `json:"assembled"`
	Replies   []replay.Reply `json:"replies"`
	// Earlier tells that the earlier messages of the thread are in the input.
	Earlier bool `json:"earlier"`
}

// Played is the result of a played trial.
type Played struct {
	*replay.Result
	Given turn.Given // without messages if there is no run
	// Place is where the message was; its Message is nil.
	Place listing.Life
}

// maxTry bounds a text to try, in bytes.
const maxTry = 256 << 10

// Try plays a message on a scratch store, with the earlier messages of its thread. It stores and sends nothing.
func (s *Service) Try(ctx context.Context, t Trial) (Tried, error) {
	if s.Trial == nil {
		return Tried{}, s.needsLive("a trial")
	}
	var faults event.FieldErrors
	faults.Check(s.Config().Workspace(t.Workspace) != nil, "workspace", "must be a configured workspace")
	faults.Check(strings.TrimSpace(t.Text) != "" && len(t.Text) <= maxTry, "text", "must be what somebody writes, in at most 256 KiB")
	if len(faults) > 0 {
		return Tried{}, faults
	}
	var thread *listing.Thread
	if t.Thread != "" {
		found, err := s.Journal.Listing.ThreadOf(ctx, t.Thread)
		if err != nil {
			return Tried{}, err
		}
		if found.Workspace != t.Workspace {
			return Tried{}, event.FieldErrors{{Field: "thread", Message: "is of the workspace " + found.Workspace}}
		}
		thread = &found
	}
	ctx, cancel := context.WithTimeoutCause(ctx, playTime, errTryTime)
	defer cancel()
	played, err := s.Trial(ctx, t, thread)
	switch {
	case context.Cause(ctx) == errTryTime:
		return Tried{}, Fail(http.StatusGatewayTimeout, "agent", errTryTime.Error())
	case err != nil:
		return Tried{}, err
	}
	return s.tried(t, played), nil
}

var errTryTime = errors.New("the agent did not answer within 25 seconds; try it without the agent")

// tried returns the result of a trial in the form of the API.
func (s *Service) tried(t Trial, p Played) Tried {
	made := Tried{
		Disposition: string(p.Disposition), Trigger: string(p.Trigger), Reason: p.Reason, Error: p.Error, Because: []config.Setting{},
		Assembled: inputOf(p.Given), Replies: []replay.Reply{}, Earlier: t.Thread != "" && p.Trigger == messages.TriggerRun,
	}
	w := Why{Trigger: made.Trigger, Reason: made.Reason, Because: []config.Setting{}}
	w.judge(&p.Place, s.Config())
	made.Words, made.Change, made.Because = w.Words, w.Change, w.Because
	if p.Trigger == messages.TriggerRun {
		made.Agent = p.Given.Agent
	}
	if t.Ask {
		made.Replies = append(made.Replies, p.Replies...)
	}
	return made
}
