package player

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"time"

	"parley/adapters"
	"parley/cmd/parley/internal/operator"
	"parley/config"
	"parley/ingest"
	"parley/ingest/event"
	"parley/ingest/journal"
	"parley/ingest/journal/messages"
)

// liveFacts answers a replay's lookups from the real journal, and names from the platform if the daemon runs.
type liveFacts struct {
	self        event.Self
	channelType func(channel string) event.ChannelType
	names       ingest.Names // nil: every name is unknown
}

var (
	_ adapters.Facts = (*liveFacts)(nil)
	_ ingest.Names   = (*liveFacts)(nil)
)

// newLiveFacts reads the facts about a workspace. A channel's type is unknown if the store does not answer.
func newLiveFacts(ctx context.Context, j *journal.Journal, workspace string, names ingest.Names) (*liveFacts, error) {
	self, err := j.Threads.Self(ctx, workspace)
	return &liveFacts{self: self, names: names, channelType: func(channel string) event.ChannelType {
		kind, _ := j.Threads.ChannelType(ctx, workspace, channel)
		return kind
	}}, err
}

// Self implements adapters.Facts.
func (f *liveFacts) Self() event.Self { return f.self }

// ChannelType implements adapters.Facts.
func (f *liveFacts) ChannelType(channel string) event.ChannelType { return f.channelType(channel) }

// User implements ingest.Names.
func (f *liveFacts) User(ctx context.Context, id string) (adapters.User, bool) {
	if f.names == nil {
		return adapters.User{}, false
	}
	return f.names.User(ctx, id)
}

// onScratch gives do a player on a new scratch store that has the workspace and the facts about it, and removes the store.
func onScratch(ctx context.Context, c *config.Config, w scope, facts *liveFacts, do func(p *player) error) (err error) {
	scratch, err := os.MkdirTemp("", "parley-replay-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	p, err := newPlayer(ctx, Recording{Config: c, Out: io.Discard, Log: slog.New(slog.DiscardHandler)}, scratch)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Journal.Close()) }()
	p.live = facts
	if _, err := p.workspace(ctx, w.platform, w.id); err != nil {
		return err
	}
	return do(p)
}

// settle waits for the result of an envelope and for the end of its run.
func (p *player) settle(ctx context.Context) error {
	if err := p.quiet(ctx, time.Time{}); err != nil { // the due turns are known after this
		return err
	}
	return p.finish(ctx)
}

// try plays an envelope, and adds its result and the input of its run.
func (p *player) try(ctx context.Context, envelope event.Envelope, made *operator.Played) error {
	err := p.serve(ctx, func(ctx context.Context) error {
		receipt, err := p.Ingest.Accept(ctx, envelope)
		if err != nil {
			return err
		}
		made.Result = p.result(receipt.ID)
		return p.settle(ctx)
	})
	if err != nil || made.Thread == "" || made.Trigger != messages.TriggerRun {
		return err
	}
	thread, err := p.Journal.Listing.ThreadOf(ctx, string(made.Thread))
	if err != nil {
		return err
	}
	made.Place.Channel = thread.Channel
	made.Given, err = p.Turns.LastInput(ctx, thread.ID)
	return err
}
