package player

import (
	"context"
	"errors"

	"parley/adapters/replay"
	"parley/config"
	"parley/ingest"
	"parley/ingest/event"
	"parley/ingest/journal"
	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/transfer"
)

// PlayLetter plays a dead letter with a configuration, on a scratch store on which it is resubmitted as on the real
// one, behind the earlier messages of its thread. names knows its people; nil for nobody. It asks the agent, and stores
// and sends nothing.
func PlayLetter(ctx context.Context, c *config.Config, j *journal.Journal, names ingest.Names, letter envelopes.Letter) (result *replay.Result, err error) {
	facts, err := newLiveFacts(ctx, j, letter.Envelope.Workspace, names)
	if err != nil {
		return nil, err
	}
	err = onScratch(ctx, c, scope{letter.Envelope.Platform, letter.Envelope.Workspace}, facts, func(p *player) error {
		if err := p.recall(ctx, j, letter.Key); err != nil {
			return err
		}
		return p.serve(ctx, func(ctx context.Context) error {
			keys := event.Keys{Kind: letter.Kind, Dedupe: letter.Dedupe, Result: event.Refuse(errors.New("not played yet"))}
			stored, err := p.Journal.Envelopes.Accept(ctx, envelopes.AcceptRequest{Envelope: letter.Envelope, Keys: keys})
			if err != nil {
				return err
			}
			result = p.result(stored.ID)
			if err := p.Ingest.Resubmit(ctx, stored.ID); err != nil {
				return err
			}
			return p.settle(ctx)
		})
	})
	return result, err
}

// recalled is the number of earlier messages that a thread has on a scratch store.
const recalled = 500

// recall copies the newest messages of a thread of the real journal, if it has the thread.
func (p *player) recall(ctx context.Context, j *journal.Journal, thread event.ThreadKey) error {
	if thread == "" {
		return nil
	}
	id, err := j.Listing.ThreadOf(ctx, string(thread))
	if err == nil {
		err = transfer.CopyThread(ctx, j.Engine(), p.Journal.Engine(), id.ID, recalled)
	}
	if errors.Is(err, storage.ErrNotFound) {
		return nil
	}
	return err
}
