package turn

import (
	"context"

	"parley/assembly"
	"parley/ingest/journal/runs"
)

// Given is an agent's input as an operator sees it.
type Given struct {
	Run   string
	Agent string
	// Kept is the input that the agent got, a JSON list of messages; empty if it is not kept.
	Kept string
	// Messages are the input as it would be assembled now; nil if the input is kept.
	Messages []assembly.Message
	// Typed are the texts of people's messages in it, as their authors typed them, by UUID.
	Typed map[string]string
}

// LastInput returns the input of the newest run of a thread, by the thread's UUID: as the agent got it, if
// that is kept, and otherwise as it would be now. It changes nothing and asks nobody. It fails with
// storage.ErrNotFound if the thread has no run.
func (r *Runner) LastInput(ctx context.Context, thread string) (Given, error) {
	var window assembly.Window
	last, err := r.Journal.LastInput(ctx, thread, func(run *runs.Run) runs.Window {
		window = r.Settings(run).Window
		return runs.Window{Turns: window.Turns, Bytes: window.Bytes, Context: window.Thread}
	})
	if err != nil {
		return Given{}, err
	}
	shown := Given{Run: last.Run.ID, Agent: last.Run.Agent, Kept: last.Kept}
	if shown.Kept != "" {
		return shown, nil
	}
	l := lines{agent: last.Run.Agent}
	turns := make([]assembly.Turn, len(last.Turns))
	for i := range last.Turns {
		turns[i] = l.turn(&last.Turns[i])
	}
	if l.err != nil {
		return Given{}, l.err
	}
	if err := l.nameOwn(ctx, r.Journal, last.Run.Workspace); err != nil {
		return Given{}, err
	}
	shown.Typed = map[string]string{}
	for _, t := range last.Turns {
		for _, m := range t.Messages {
			shown.Typed[m.UUID] = m.Content
		}
	}
	shown.Messages = assembly.Assemble(last.Run.Agent, turns, window, r.Mentions)
	return shown, nil
}
