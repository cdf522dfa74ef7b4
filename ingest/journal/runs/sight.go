package runs

import (
	"context"
	"slices"

	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/storage"
)

// Sight says which messages of its workspace the agent of a run sees. The input of the agent and the tools ask the same one.
// It is for one goroutine.
type Sight struct {
	rules SightRules
	runs  *Runs
	run   *Run
	// Program has injected a message of the run's turn, or a message of the run that launched a workstream whose report is in the turn,
	// and may not read the workspace; empty for none. It gets the answer. Unless it has begun the thread, its run sees its own messages
	// and the answers to them alone.
	Program string
	begun   bool
	answers map[string]bool // whether the program alone asked for a run
	places  map[string]sighted
}

// SightRules are the settings of the present day.
type SightRules struct {
	// Admits returns the judgement of the policy about the messages of a channel of the run's workspace: whether it admits a
	// message, and the message without the quotations that it refuses.
	Admits func(run *Run, at event.Channel) func(m messages.Message) (messages.Message, bool)
	// Reads reports whether a program, as event.InjectedBy names it, may read a workspace.
	Reads func(by, workspace string) bool
}

// sighted is a thread whose messages are looked at.
type sighted struct {
	admits      func(m messages.Message) (messages.Message, bool)
	contextFrom int64
}

// Sight returns what the agent of a run sees.
func (r *Runs) Sight(ctx context.Context, run *Run, rules SightRules) (*Sight, error) {
	s := &Sight{rules: rules, runs: r, run: run, answers: map[string]bool{}, places: map[string]sighted{
		run.ThreadID: {rules.Admits(run, event.Channel{ID: run.Channel, Parent: run.Parent}), run.ContextFrom},
	}}
	for i := range run.Messages {
		by, err := r.programs(ctx, run.Messages[i].ExternalID)
		if err != nil {
			return s, err
		}
		for _, program := range by {
			if !rules.Reads(program, run.Workspace) {
				s.Program = program
			}
		}
	}
	if s.Program == "" {
		return s, nil
	}
	first, err := storage.List(ctx, r.db, storage.Self[string], `SELECT external_id FROM (SELECT external_id FROM messages WHERE thread = $1 AND seq IS NOT NULL AND external_id IS NOT NULL ORDER BY seq LIMIT 1) AS first
		UNION ALL SELECT external_id FROM messages WHERE $3 <> '' AND id = (SELECT run FROM deliveries WHERE workspace = $2 AND platform_id = $3) AND external_id IS NOT NULL`,
		run.Thread, run.Workspace, run.OpenedOn)
	s.begun = slices.ContainsFunc(first, s.injects)
	return s, err
}

// programs returns the programs from which the message with an external id comes. An injected message comes from the program that
// injected it, the report of a workstream from the programs of the run that launched the workstream.
func (r *Runs) programs(ctx context.Context, externalID string) (by []string, err error) {
	ids, asked := []string{externalID}, map[string]bool{}
	for len(ids) > 0 {
		id := ids[0]
		ids = ids[1:]
		launch, isReport := event.ReportOf(id)
		if program, ok := event.InjectedBy(id); ok {
			by = append(by, program)
		} else if isReport && !asked[launch] {
			asked[launch] = true
			more, err := storage.List(ctx, r.db, storage.Self[string], `SELECT external_id FROM messages WHERE run = (SELECT run FROM workstreams WHERE id = $1) AND external_id IS NOT NULL`, launch)
			if err != nil {
				return nil, err
			}
			ids = append(ids, more...)
		}
	}
	return by, nil
}

// injects reports whether the program of the run has injected the message with an external id.
func (s *Sight) injects(externalID string) bool {
	by, ok := event.InjectedBy(externalID)
	return ok && by == s.Program
}

// Bounded reports whether the run sees a part of its own thread alone.
func (s *Sight) Bounded() bool { return s.Program != "" && !s.begun }

// AdmitsPlace reports whether the policy admits a channel, whose parent is a channel to which it belongs.
func (s *Sight) AdmitsPlace(at event.Channel) bool {
	_, ok := s.rules.Admits(s.run, at)(messages.Message{Author: messages.ByAgent})
	return ok
}

// AdmitsPerson reports whether the policy admits a sender whose kind is not known.
func (s *Sight) AdmitsPerson(sender string) bool {
	_, ok := s.rules.Admits(s.run, event.Channel{})(messages.Message{SenderID: sender})
	return ok
}

// Shown returns a message of a thread of the workspace, by the thread's UUID, as the agent sees it. It returns false if the message
// is deleted, is from before the thread's last command for a new context, is kept out of memory, or is a row about a stage of work;
// if the policy refuses its sender or channel; or if a program may not read it by its question. The agent sees the messages that its
// run answers, unless they are deleted.
func (s *Sight) Shown(ctx context.Context, thread string, m messages.Message) (messages.Message, bool, error) {
	switch {
	case !m.DeletedAt.IsZero():
		return m, false, nil
	case m.Run == s.run.ID && m.Author != messages.ByTool:
		return m, true, nil
	case !m.Memory, m.Author == messages.ByTool:
		return m, false, nil
	}
	at, known := s.places[thread]
	if !known {
		var channel event.Channel
		if found, err := s.runs.db.Row(ctx, []any{&channel.ID, &channel.Parent, &at.contextFrom}, `SELECT channel, parent, context_from FROM threads WHERE uuid = $1 AND workspace = $2`,
			thread, s.run.Workspace); err != nil || !found {
			return m, false, err
		}
		at.admits = s.rules.Admits(s.run, channel)
		s.places[thread] = at
	}
	if m.Seq <= at.contextFrom {
		return m, false, nil
	}
	if s.Bounded() {
		if ofProgram, err := s.ofProgram(ctx, &m); err != nil || !ofProgram || thread != s.run.ThreadID {
			return m, false, err
		}
	}
	m, ok := at.admits(m)
	return m, ok, nil
}

// causes reports whether the message with an external id comes from the program of the run alone.
func (s *Sight) causes(ctx context.Context, externalID string) (bool, error) {
	by, err := s.runs.programs(ctx, externalID)
	return len(by) > 0 && !slices.ContainsFunc(by, func(program string) bool { return program != s.Program }), err
}

// ofProgram reports whether a message comes from the run's program, or whether that alone asked for the run that the message answers.
func (s *Sight) ofProgram(ctx context.Context, m *messages.Message) (bool, error) {
	if m.Author != messages.ByAgent {
		return s.causes(ctx, m.ExternalID)
	}
	known, ok := s.answers[m.Run]
	if !ok {
		asked, err := storage.List(ctx, s.runs.db, storage.Self[string], `SELECT coalesce(external_id, '') FROM messages WHERE run = $1 AND (author IN ('human', 'bot') OR author = 'system' AND external_id IS NOT NULL)`, m.Run)
		if err != nil {
			return false, err
		}
		known = len(asked) > 0
		for _, id := range asked {
			caused, err := s.causes(ctx, id)
			if err != nil {
				return false, err
			}
			known = known && caused
		}
		s.answers[m.Run] = known
	}
	return known, nil
}

// Hide takes from the turns of a transcript what the agent does not see. The last turn is the run's own. The answer of a turn
// goes with a question of it that a program may not read.
func (s *Sight) Hide(ctx context.Context, turns []Turn) error {
	for i := range turns {
		t := &turns[i]
		var err error
		many := func(thread string, list []messages.Message) (seen []messages.Message) {
			for _, m := range list {
				shown, ok, fault := s.Shown(ctx, thread, m)
				if fault != nil {
					err = fault
				}
				if ok {
					seen = append(seen, shown)
				}
			}
			return seen
		}
		one := func(m *messages.Message) *messages.Message {
			if m == nil {
				return nil
			}
			if seen := many(s.run.ThreadID, []messages.Message{*m}); len(seen) > 0 {
				return &seen[0]
			}
			return nil
		}
		own := i == len(turns)-1
		t.Root, t.Context, t.Reply = one(t.Root), many(s.run.ThreadID, t.Context), one(t.Reply)
		if !own {
			t.Messages = many(s.run.ThreadID, t.Messages)
		}
		if t.OpenedOn = s.opening(t.OpenedOn); s.Bounded() {
			t.Earlier, t.Gap, t.OpenedOn = 0, false, nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// opening returns the messages of another thread of the same channel on which the thread was opened, as far as the policy
// admits them.
func (s *Sight) opening(list []messages.Message) (seen []messages.Message) {
	for _, m := range list {
		if shown, ok := s.places[s.run.ThreadID].admits(m); ok && m.Memory {
			seen = append(seen, shown)
		}
	}
	return seen
}
