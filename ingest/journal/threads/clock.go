package threads

import "parley/ingest/journal/storage"

// CorrectIntakes makes intakes due now that are due later than a time, because the clock led.
func CorrectIntakes(tx *storage.Txn, now, late int64) {
	tx.Do(`UPDATE threads SET intake_at = $1 WHERE intake_at > $2`, now, late)
}

// CorrectTurns makes turns and unfinished runs due now that are due later than a time, because the clock led. The attempt of a run may be later, up
// to lateRun. A turn that waits for the answer to a question is due when the time of that is over.
func CorrectTurns(tx *storage.Txn, now, late, lateRun int64) {
	const asks = `EXISTS (SELECT 1 FROM questions WHERE run = threads.question AND state = 'open'`
	tx.Do(`UPDATE threads SET turn_at = (SELECT until_at FROM questions WHERE run = threads.question) WHERE turn_at > $1 AND `+asks+` AND until_at < threads.turn_at)`, late)
	tx.Do(`UPDATE threads SET run_not_before = $1 WHERE run_id IS NOT NULL AND turn_at IS NOT NULL AND run_not_before > $2`, now, lateRun)
	tx.Do(`UPDATE threads SET turn_at = $1 WHERE turn_at > $2 AND NOT `+asks+`)`, now, late)
}

// CorrectLeases ends leases now that end later than a time, because the clock led: exclusive ones, and those of threads that have work.
func CorrectLeases(tx *storage.Txn, now, late int64) {
	tx.Do(`UPDATE exclusive_leases SET until = $1 WHERE until > $2`, now, late)
	for _, works := range hasWork {
		tx.Do(`UPDATE threads SET lease_until = $1 WHERE lease_until > $2 AND `+works, now, late)
	}
}
