package runapi

import (
	"bytes"
	"context"
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"parley/adapters/agent/remote"
	"parley/assembly"
	"parley/assembly/turn"
)

var _ turn.Steerer = (*Agent)(nil)

// stopTimeout bounds the call that tells the server of a stop.
const stopTimeout = 2 * time.Second

// userInput is the data of the signal UserInput.
type userInput struct {
	Message         string `json:"message"`
	ClientMessageID string `json:"client_message_id"`
}

// Steer implements turn.Steerer: each message is a signal UserInput to the run, with the
// message's id. Blocks, whose ids are no UUIDs, are left out.
func (a *Agent) Steer(ctx context.Context, input assembly.Input, messages []assembly.Message) error {
	ctx = remote.WithRunToken(ctx, input)
	for _, m := range messages {
		if m.Role != assembly.RoleUser && !isSaid(m) {
			continue
		}
		if err := a.signal(ctx, input.RunID, "UserInput", userInput{remote.Text(m), m.ID}); err != nil {
			return err
		}
	}
	return nil
}

// stop tells the server that nobody wants the answer of the run. Parley takes no answer of it either way.
func (a *Agent) stop(ctx context.Context, run string) {
	ctx, cancel := context.WithTimeout(turn.WithProof(context.WithoutCancel(ctx), nil), stopTimeout)
	defer cancel()
	_ = a.signal(ctx, run, "Stop", struct{}{})
}

// signal posts {"signal","data"} to a run.
func (a *Agent) signal(ctx context.Context, run, name string, data any) error {
	body, err := json.Marshal(map[string]any{"signal": name, "data": data})
	if err != nil {
		return err
	}
	address := strings.TrimRight(a.config.BaseURL, "/") + "/runs/" + url.PathEscape(run) + "/signals"
	request, err := a.client.Request(ctx, address, "", bytes.NewReader(body)) // the run's id is no key of a signal
	if err != nil {
		return err
	}
	a.authorize(request)
	return a.client.Send(request)
}
