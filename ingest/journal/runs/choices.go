package runs

import (
	"context"

	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
	"parley/ingest/stream"
)

// ChoicesOf returns the choices that an agent has offered in a thread, with the chosen values.
func ChoicesOf(tx *storage.Txn, thread int64, agent string) []stream.Choice {
	type row struct{ chosen, offered string }
	var list []stream.Choice
	for _, r := range storage.Rows(tx, func(r *row) []any { return []any{&r.chosen, &r.offered} },
		`SELECT chosen, offered FROM agent_choices WHERE thread = $1 AND agent = $2 ORDER BY name`, thread, agent) {
		c := stream.Choice{Chosen: r.chosen}
		tx.Fail(storage.Unpack(r.offered, &c))
		list = append(list, c)
	}
	return list
}

// Choices is ChoicesOf for the agent of a run.
func (r *Runs) Choices(ctx context.Context, run *Run) ([]stream.Choice, error) {
	return storage.Read(ctx, r.db, func(tx *storage.Txn) []stream.Choice { return ChoicesOf(tx, run.Thread, run.Agent) })
}

// Offer stores the choices that the agent of a run offers in its thread. It fails with ErrFenced if the claim or the run has ended.
func (r *Runs) Offer(ctx context.Context, claim *threads.Claim, run *Run, offered []stream.Choice) error {
	return r.db.Change(ctx, claim.Key, func(tx *storage.Txn) {
		lockRun(tx, claim, run, []any{new(int64)}, `id`)
		for i := range offered {
			tx.Do(`INSERT INTO agent_choices (thread, agent, name, chosen, offered) VALUES ($1, $2, $3, '', $4)
				ON CONFLICT (thread, agent, name) DO UPDATE SET offered = excluded.offered`, run.Thread, run.Agent, offered[i].Name, tx.Pack(&offered[i], false))
		}
	})
}

// Choose stores the chosen value of a choice that an agent has offered in a thread.
func Choose(tx *storage.Txn, thread int64, agent, name, value string) {
	tx.Do(`UPDATE agent_choices SET chosen = $4 WHERE thread = $1 AND agent = $2 AND name = $3`, thread, agent, name, value)
}
