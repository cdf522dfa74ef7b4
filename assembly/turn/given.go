package turn

import (
	"context"

	"parley/assembly"
	"parley/ingest/journal"
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

// GivenTo returns the input of a run, or of the newest run, of a thread, by the thread's UUID: as the agent got it, if
// that is kept, and otherwise as it would be now. It changes nothing and asks nobody. It fails with
// storage.ErrNotFound if the thread has no such run.
func GivenTo(ctx context.Context, j *journal.Journal, thread, run string, windowOf func(*runs.Run) assembly.Window, mentions assembly.Mentions) (Given, error) {
	var window assembly.Window
	past, err := j.PastInput(ctx, thread, run, func(run *runs.Run) runs.Window {
		window = windowOf(run)
		return runs.Window{Turns: window.Turns, Bytes: window.Bytes, Context: window.Thread}
	})
	if err != nil {
		return Given{}, err
	}
	shown := Given{Run: past.Run.ID, Agent: past.Run.Agent, Kept: past.Kept}
	if shown.Kept != "" {
		return shown, nil
	}
	l := lines{agent: past.Run.Agent}
	turns := make([]assembly.Turn, len(past.Turns))
	for i := range past.Turns {
		turns[i] = l.turn(&past.Turns[i])
	}
	if l.err != nil {
		return Given{}, l.err
	}
	if err := l.nameOwn(ctx, j, past.Run.Workspace); err != nil {
		return Given{}, err
	}
	shown.Typed = map[string]string{}
	for _, t := range past.Turns {
		for _, m := range t.Messages {
			shown.Typed[m.UUID] = m.Content
		}
	}
	shown.Messages = assembly.Assemble(past.Run.Agent, turns, window, mentions)
	return shown, nil
}

// LastInput is GivenTo for the newest run of a thread.
func (r *Runner) LastInput(ctx context.Context, thread string) (Given, error) {
	return GivenTo(ctx, r.Journal, thread, "", func(run *runs.Run) assembly.Window { return r.Settings(run).Window }, r.Mentions)
}
