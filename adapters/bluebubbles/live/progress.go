package live

import (
	"sync"
	"time"

	"parley/adapters/bluebubbles/payload"
)

// maxTaken bounds the messages whose last accepted state is remembered.
const maxTaken = 10_000

// progress is how far the server's rows are accepted. Each row has a number, the ROWID, and a new row
// has a greater one than all others.
type progress struct {
	busy chan struct{} // holds a value during a read

	mu sync.Mutex
	// top is the number up to which every row is accepted, or has its place before later ones,
	// as far as this process knows.
	top int64
	// taken are the last accepted states of messages, by guid. They spare the store most
	// repetitions, and show that a webhook was overtaken.
	taken map[string]state
}

// state is an accepted state of a message.
type state struct {
	dedupe string
	edited time.Time // of a message that is known or gone
}

func newProgress() *progress {
	return &progress{busy: make(chan struct{}, 1), taken: map[string]state{}}
}

// misses reports whether rows before this one may not be accepted yet.
func (p *progress) misses(row int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return row > p.top+1
}

// reached notes that every row up to this one is accepted.
func (p *progress) reached(row int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.top = max(p.top, row)
}

// restart notes the greatest number of another server.
func (p *progress) restart(row int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.top = row
}

// lost notes that a row was not accepted after all.
func (p *progress) lost(row int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.top = min(p.top, row-1)
}

// follows notes that a row has its place, if it is the next one.
func (p *progress) follows(row int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if row == p.top+1 {
		p.top = row
	}
}

// isTaken reports whether the state of a message, or a later one, is accepted.
func (p *progress) isTaken(of *payload.Payload) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := p.taken[of.GUID]
	return of.GUID != "" && (of.Dedupe == last.dedupe || of.Edited.Before(last.edited))
}

// took notes that a state of a message is accepted. An earlier state may still be needed if the
// message is not known.
func (p *progress) took(of *payload.Payload, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.taken) >= maxTaken {
		clear(p.taken)
	}
	last := state{dedupe: of.Dedupe}
	if known {
		last.edited = of.Edited
	}
	p.taken[of.GUID] = last
}
