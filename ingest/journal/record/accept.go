package record

import (
	"context"

	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/storage"
)

// AcceptEntry makes an envelope durable as envelopes.Accept does. If its thread is idle and its message is new, the
// same transaction records the message, as Record does, and recorded gets the result, as
// storage.WriteOptions.Committed. Otherwise the envelope waits for intake. The entry's envelope and UUID are
// not used.
func (s *Recorder) AcceptEntry(ctx context.Context, request envelopes.AcceptRequest, entry Entry, recorded func(envelopes.AcceptResult, Result)) (envelopes.AcceptResult, error) {
	idle := func(tx *storage.Txn, made envelopes.AcceptResult) *recordTx {
		entry := entry
		entry.Envelope, entry.MessageUUID = made.ID, made.MessageUUID
		if r := s.begin(tx, &made.Claim, entry); r.recordNew() {
			return r
		}
		return nil
	}
	return envelopes.AcceptThen(ctx, s.envelopes, request, idle, func(made envelopes.AcceptResult, r *recordTx) {
		if r == nil {
			return
		}
		result, err := s.committed(ctx, r)
		if err != nil { // the run cannot be handed over in memory; its worker gets the error from the store
			result.Begun = nil
		}
		recorded(made, result)
	})
}
