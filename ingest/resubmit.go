package ingest

import (
	"context"
	"fmt"

	"parley/ingest/event"
	"parley/ingest/journal/envelopes"
	"parley/ingest/work"
)

// Resubmit gives a dead letter to intake again; see envelopes.Resubmit. The policy judges its age by the
// present time. Wait waits for its result. Resubmit fails with envelopes.ErrSettled if the envelope is no
// dead letter any more, with envelopes.ErrRemoved if its payload is gone, and with storage.ErrNotFound.
func (in *Ingest) Resubmit(ctx context.Context, envelope int64) error {
	letter, err := in.Journal.Envelopes.Letter(ctx, envelope)
	if err != nil {
		return err
	}
	w := in.workspace(letter.Envelope.Platform, letter.Envelope.Workspace)
	if w == nil {
		return fmt.Errorf("workspace %q is not configured", letter.Envelope.Workspace)
	}
	var keys event.Keys
	if letter.Thread == 0 && len(letter.Envelope.Body) > 0 {
		if keys, err = in.readKeys(ctx, w, &letter.Envelope); err != nil {
			return err
		}
	}
	stored, err := in.Journal.Envelopes.Resubmit(ctx, letter, keys)
	switch {
	case err != nil:
		return err
	case stored.Result != nil:
		in.settledAtOnce(envelopes.Pending{ID: letter.ID, Envelope: letter.Envelope, Kind: keys.Kind, MessageID: keys.MessageID, Dedupe: letter.Dedupe},
			keys.Thread, *stored.Result)
	case stored.Thread != 0:
		in.Work.Wake(work.Intake, "", stored.Thread)
	}
	return nil
}
