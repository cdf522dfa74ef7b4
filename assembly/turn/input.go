package turn

import (
	"cmp"
	"context"
	"slices"

	"parley/assembly"
	"parley/ingest/journal"
)

// storeError is the store's own trouble: no failure of the agent.
type storeError struct{ err error }

// Error gives the store's words.
func (e *storeError) Error() string { return e.err.Error() }

// Unwrap gives the store's error.
func (e *storeError) Unwrap() error { return e.err }

// stored marks what failed because the store did.
func stored(err error) error {
	if err != nil && journal.Unavailable(err) {
		return &storeError{err}
	}
	return err
}

// input assembles what the agent is given.
func (a *attempt) input(ctx context.Context) (assembly.Input, error) {
	window := a.settings.Window
	a.run.Fresh = a.run.Fresh && a.fresh()
	input := assembly.Input{ThreadID: a.run.ThreadID, RunID: a.run.ID}
	if a.Past != nil && a.run.ContextAfter == 0 && a.run.Preface == nil {
		if err := a.Past.Preface(ctx, a.lease, a.run, window.Thread); err != nil {
			return input, stored(err)
		}
	}
	turns, err := a.Journal.Transcript(ctx, a.run, journal.Window{Turns: window.Turns, Bytes: window.Bytes, Context: window.Thread})
	if err != nil {
		return input, stored(err)
	}
	current := &turns[len(turns)-1]
	if len(current.Messages) == 0 {
		return input, errWithdrawn // since the run began
	}
	a.keepFiles(ctx, current)
	lines, err := a.lines(ctx, turns)
	if err != nil {
		return input, stored(err)
	}
	input.Messages = assembly.Assemble(a.profile.ID, lines, window)
	input.Said = said(current.Messages)
	return input, nil
}

// said is the turn as it was typed, in the order in which it is assembled.
func said(messages []journal.Message) []assembly.Said {
	messages = slices.SortedStableFunc(slices.Values(messages), func(a, b journal.Message) int {
		return cmp.Or(a.SentAt.Compare(b.SentAt), cmp.Compare(a.Seq, b.Seq))
	})
	out := make([]assembly.Said, len(messages))
	for i, m := range messages {
		out[i].Content = m.Content
		for _, file := range m.Attachments {
			out[i].Files = append(out[i].Files, file.Name)
		}
	}
	return out
}

// maxFiles is how many files of one message are copied: as many as people can put
// in one on Slack and Discord. A program may put more there; those stay names.
const maxFiles = 10

// keepFiles copies the files of the turn's own messages before they are needed.
func (a *attempt) keepFiles(ctx context.Context, current *journal.Turn) {
	for i := range current.Messages {
		for k, file := range current.Messages[i].Attachments {
			if k >= maxFiles {
				break
			}
			current.Messages[i].Attachments[k] = a.Files.Keep(ctx, a.run.Workspace, file)
		}
	}
}
