package trial

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"parley/cmd/parley-bench/internal/ledger"
)

// journaled compares the people's messages in the journal with the ledger.
type journaled struct {
	Lost, Doubled int
	Disordered    int // shown before an earlier message of their thread
	Unplaced      int // messages whose place does not count
	Echoes        int // our own messages that the journal shows as another author's
}

// Journal compares the journal with the ledger's messages. The place of a message counts if the
// SQL condition placed holds. order is the order of a thread's messages in SQL.
func (t *Trial) Journal(ctx context.Context, placed, order string) (found journaled, err error) {
	rows, err := t.Nodes.Store.QueryContext(ctx, `SELECT thread, external_id, metadata, `+placed+` FROM messages
		WHERE author = 'human' ORDER BY thread, `+order)
	if err != nil {
		return found, fmt.Errorf("read the journal: %w", err)
	}
	defer rows.Close()
	ids := map[string]int{}
	for _, m := range t.Ledger.Messages {
		ids[m.TS] = m.ID
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
			found.Echoes++
		}
		id, said := ids[external]
		if !said {
			continue
		}
		seen[external]++
		switch {
		case !counts:
			found.Unplaced++
		case id < last[thread]:
			found.Disordered++
		default:
			last[thread] = id
		}
	}
	found.Lost, found.Doubled = ledger.OnceEach(maps.Keys(ids), seen)
	return found, rows.Err()
}
