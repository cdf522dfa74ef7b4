package main

import (
	"context"
	"fmt"
	"maps"
	"strings"
)

// journaled compares the people's messages in the journal with the ledger.
type journaled struct {
	lost, doubled int
	disordered    int // shown before an earlier message of their thread
	unplaced      int // messages whose place does not count
	echoes        int // our own messages that the journal shows as another author's
}

// journal compares the journal with the ledger's messages. The place of a message counts if the
// SQL condition placed holds. order is the order of a thread's messages in SQL.
func (t *trial) journal(ctx context.Context, placed, order string) (found journaled, err error) {
	rows, err := t.nodes.store.QueryContext(ctx, `SELECT thread, external_id, metadata, `+placed+` FROM messages
		WHERE author = 'human' ORDER BY thread, `+order)
	if err != nil {
		return found, fmt.Errorf("read the journal: %w", err)
	}
	defer rows.Close()
	ids := map[string]int{}
	for _, m := range t.ledger.messages {
		ids[m.ts] = m.id
	}
	seen, last := map[string]int{}, map[int64]int{}
	for rows.Next() {
		var thread int64
		var external string
		var metadata []byte
		var counts bool
		if err := rows.Scan(&thread, &external, &metadata, &counts); err != nil {
			return found, fmt.Errorf("read the journal: %w", err)
		}
		if strings.Contains(string(metadata), `"is_from_me":true`) {
			found.echoes++
		}
		id, said := ids[external]
		if !said {
			continue
		}
		seen[external]++
		switch {
		case !counts:
			found.unplaced++
		case id < last[thread]:
			found.disordered++
		default:
			last[thread] = id
		}
	}
	found.lost, found.doubled = onceEach(maps.Keys(ids), seen)
	return found, rows.Err()
}
