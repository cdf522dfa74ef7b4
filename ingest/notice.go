package ingest

import (
	"slices"

	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/record"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/threads"
)

// tell asks for a notice to the sender of a message.
func tell(m *event.Message, text string) *record.Tell {
	return &record.Tell{Text: text, Message: m.ExternalID, Sender: m.Metadata.SenderID}
}

// told returns the notice that a decision of a gate asks for, to the sender or the thread of a run.
func (in *Ingest) told(to *runs.Run, g gate, t record.Tell) outbox.Notice {
	text := t.Text
	if t.Command != "" {
		text = g.answer(t.Command, t.State)
	}
	notice := in.notice(to, text)
	if clears(t) {
		notice.Posts = append(notice.Posts, in.Notices.Clear(to)...)
	}
	if t.Private {
		notice.Posts = slices.DeleteFunc(notice.Posts, func(p outbox.Post) bool { return !p.Alone })
	}
	return notice
}

// clears reports whether a notice also removes the signs of work below the messages that waited: a stop ends those for which no
// run will end.
func clears(t record.Tell) bool {
	return t.Command == record.CommandStop && t.State.Run == "" && t.State.Waiting > 0
}

// at returns a run of a thread that is for a message of a sender; without a sender, a run for the thread.
func (w *workspace) at(thread event.ThreadKey, message, sender string) *runs.Run {
	run := &runs.Run{Place: threads.Place{Platform: w.config.Platform, Workspace: w.config.ID, ThreadKey: thread}}
	if sender != "" {
		run.Messages = []messages.Message{{ExternalID: message, SenderID: sender, Author: messages.ByHuman}}
	}
	return run
}

// notice returns a notice to the thread of a run; to the sender, if the run has messages.
func (in *Ingest) notice(run *runs.Run, text string) outbox.Notice {
	notice := outbox.NewNotice(run.Platform, text)
	notice.Posts = in.Notices.Notice(run, text)
	return notice
}
