package record

import (
	"context"

	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
)

// AcceptEntry makes an envelope durable as envelopes.Accept does. If its thread is new or idle and its message is new,
// the same transaction records the message, as Record does, and recorded gets the result, as
// storage.WriteOptions.Committed. Otherwise the envelope waits for intake. The entry's envelope and UUID are
// not used.
func (s *Recorder) AcceptEntry(ctx context.Context, request envelopes.AcceptRequest, entry Entry, recorded func(envelopes.AcceptResult, Result)) (envelopes.AcceptResult, error) {
	entered := func(tx *storage.Txn, claim threads.Claim, envelope int64, uuid string) *recordTx {
		entry := entry
		entry.Envelope, entry.MessageUUID = envelope, uuid
		return s.begin(tx, &claim, entry)
	}
	return envelopes.AcceptThen(ctx, s.envelopes, request, &envelopes.Then[*recordTx]{
		First: func(tx *storage.Txn, f *envelopes.First) (*recordTx, bool) {
			r := entered(tx, threads.Claim{Fence: 1, Key: request.Keys.Thread, Workspace: request.Envelope.Workspace}, 0, f.MessageUUID)
			return r, r.recordFirst(f)
		},
		Idle: func(tx *storage.Txn, made envelopes.AcceptResult) *recordTx {
			if r := entered(tx, made.Claim, made.ID, made.MessageUUID); r.recordNew() {
				return r
			}
			return nil
		},
		Committed: func(made envelopes.AcceptResult, r *recordTx) {
			if r == nil {
				return
			}
			if r.first != nil {
				r.firstMade()
			}
			result, err := s.committed(ctx, r)
			if err != nil { // the run cannot be handed over in memory; its worker gets the error from the store
				result.Begun = nil
			}
			recorded(made, result)
		},
	})
}
