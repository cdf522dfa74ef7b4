package daemon

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"time"

	"parley/adapters"
	"parley/adapters/replay"
	"parley/config"
	"parley/ingest"
	"parley/ingest/event"
	"parley/ingest/journal"
	"parley/ingest/journal/envelopes"
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
	self, err := j.Self(ctx, workspace)
	return &liveFacts{self: self, names: names, channelType: func(channel string) event.ChannelType {
		kind, _ := j.ChannelType(ctx, workspace, channel)
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

// playLetter plays a dead letter with the present configuration, and with names of its platform.
func (d *Daemon) playLetter(ctx context.Context, letter envelopes.Letter) (*replay.Result, error) {
	s := d.current.Load()
	var names ingest.Names
	if a := s.accounts[letter.Envelope.Workspace]; a != nil {
		names = a.names
	}
	return playLetter(ctx, s.config, d.journal, names, letter)
}

// playLetter plays a dead letter with this program, on a scratch store on which it is resubmitted as on the real
// one. It asks the agent, and stores and sends nothing. Earlier messages of its thread are not on the scratch store.
func playLetter(ctx context.Context, c *config.Config, j *journal.Journal, names ingest.Names, letter envelopes.Letter) (_ *replay.Result, err error) {
	scratch, err := os.MkdirTemp("", "parley-replay-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	p, err := newPlayer(ctx, Recording{Config: c, Out: io.Discard, Log: slog.New(slog.DiscardHandler)}, scratch)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.journal.Close()) }()
	if p.live, err = newLiveFacts(ctx, j, letter.Envelope.Workspace, names); err != nil {
		return nil, err
	}
	if _, err := p.workspace(ctx, letter.Envelope.Platform, letter.Envelope.Workspace); err != nil {
		return nil, err
	}
	var result *replay.Result
	err = p.serve(ctx, func(ctx context.Context) error {
		keys := event.Keys{Kind: letter.Kind, Dedupe: letter.Dedupe, Result: event.Refuse(errors.New("not played yet"))}
		stored, err := p.journal.Accept(ctx, envelopes.AcceptRequest{Envelope: letter.Envelope, Keys: keys})
		if err != nil {
			return err
		}
		result = p.result(stored.ID)
		if err := p.ingest.Resubmit(ctx, stored.ID); err != nil {
			return err
		}
		if err := p.quiet(ctx, time.Time{}); err != nil { // the due turns are known after this
			return err
		}
		return p.finish(ctx)
	})
	return result, err
}
