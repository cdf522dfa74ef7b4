package memory

import (
	"cmp"
	"sync"
)

// maxNonces bounds each generation of remembered nonces.
const maxNonces = 10_000

// Nonces are the messages of the latest posts, by nonce: from the answers to the calls and from
// our own events. The zero value knows none.
type Nonces struct {
	mu         sync.Mutex
	newer, old map[string]string // ids by nonce, in two generations
}

// Add notes the message of a nonce. An empty nonce is none.
func (n *Nonces) Add(nonce, id string) {
	if nonce == "" {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.newer == nil || len(n.newer) >= maxNonces {
		n.old, n.newer = n.newer, map[string]string{}
	}
	n.newer[nonce] = id
}

// Find returns the message with a nonce; empty for none.
func (n *Nonces) Find(nonce string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return cmp.Or(n.newer[nonce], n.old[nonce])
}

// Others returns the known messages with other nonces.
func (n *Nonces) Others(nonce string) map[string]bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	ids := map[string]bool{}
	for _, all := range []map[string]string{n.old, n.newer} {
		for key, id := range all {
			if key != nonce {
				ids[id] = true
			}
		}
	}
	return ids
}
