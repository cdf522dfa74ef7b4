package operator

import (
	"context"
	"fmt"
	"slices"
	"time"

	"parley/config"
	"parley/ingest/event"
)

// possible tests the reasons for which the store does not have a message.
func (s *Service) possible(ctx context.Context, m sought) (list []Possible, err error) {
	c := s.Config()
	if len(m.workspaces) == 0 {
		return []Possible{{"no workspace is configured for the platform of the link", true, true}}, nil
	}
	list = []Possible{}
	add := func(holds bool, format string, args ...any) {
		list = append(list, Possible{fmt.Sprintf(format, args...), true, holds})
	}
	unknown := func(reason string) { list = append(list, Possible{reason, false, false}) }
	if m.SentAt.IsZero() {
		unknown("the id is of another store or has a typing error: a link of the message tells its time and channel")
	}
	first, err := s.Journal.Listing.FirstStart(ctx)
	if err != nil {
		return nil, err
	}
	if now := s.Now(); !m.SentAt.IsZero() {
		add(m.SentAt.Before(first), "it was sent before the first start with this store, %s", first.UTC().Format(time.RFC3339))
		add(m.SentAt.After(now.Add(time.Minute)), "it is of the future: the link has a typing error")
		add(now.Sub(m.SentAt) > c.Retention.Keys, "it was ignored, and the record of that is gone after retention.keys")
	}
	for _, id := range m.workspaces {
		if err := s.possibleIn(ctx, id, m, add, unknown); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// possibleIn tests the reasons of one workspace.
func (s *Service) possibleIn(ctx context.Context, id string, m sought, add func(holds bool, format string, args ...any), unknown func(reason string)) error {
	w := s.Config().Workspace(id)
	watermark, gaps, err := s.Journal.Threads.Gaps(ctx, id, s.Now())
	if err != nil {
		return err
	}
	open := slices.ContainsFunc(gaps, func(g event.Gap) bool {
		return (m.Channel == "" || g.Channel == m.Channel) && !m.SentAt.Before(g.From) && !m.SentAt.After(g.Until)
	})
	platform, _ := config.Platform(w.Platform)
	age, _ := s.Config().Setting(id, "catch_up.max_age")
	switch {
	case platform.API:
	case m.SentAt.IsZero():
		unknown("the workspace " + id + " was down then, and its missed messages are still to be read (a gap is open)")
	default:
		add(open, "the workspace %s was down then, and its missed messages are still to be read (a gap is open)", id)
		add(m.SentAt.After(watermark) && !watermark.IsZero(), "the workspace %s has not heard from the platform since then", id)
		add(w.Backfill.MaxAge == 0 || s.Now().Sub(m.SentAt) > w.Backfill.MaxAge, "the workspace %s was down then, and the message is older than catch_up.max_age (%s)", id, age.Value)
	}
	if !platform.API {
		s.possibleChannel(ctx, id, m.Channel, add, unknown)
	}
	return nil
}

// possibleChannel tests whether the messages of a channel reach a workspace.
func (s *Service) possibleChannel(ctx context.Context, id, channel string, add func(holds bool, format string, args ...any), unknown func(reason string)) {
	words := "the bot of the workspace " + id + " is not in the channel: invite it there"
	if s.Live == nil {
		unknown(words + " (only a running daemon can ask the platform)")
		return
	}
	channels, err := s.Live.Workspaces.Channels(ctx, id)
	switch {
	case err != nil:
		unknown(words + " (the platform gave no answer: " + err.Error() + ")")
	case channel == "" || channels == nil:
		unknown(words)
	default:
		add(!slices.Contains(channels, channel), "the bot of the workspace %s is not in the channel %s: invite it there", id, channel)
	}
}
