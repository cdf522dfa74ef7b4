package deliver

import (
	"time"

	"parley/ingest/journal"
)

// piece is one post of a growing answer.
type piece struct {
	d *journal.Delivery // of its first text; nil until it is begun
	// source is the agent's text from where this post begins.
	source string
	full   bool   // it grows no more
	text   string // the whole of it, where it is full

	calling turnstile // held by who makes a call about the post, and reads or writes what follows
	id      string    // the platform's
	sendBy  time.Time // when the last call ends
	begun   time.Time // when the post was made
	shown   string    // what stands there
	clean   bool      // that is known: no call has ended without saying what became of it
	open    bool      // it is a stream that goes on
}

// settled says whether what the post shows is known, as soon as no call about it is
// under way.
func (p *piece) settled() bool {
	p.calling.enter()
	defer p.calling.leave()
	return p.clean
}

// turnstile lets one through at a time, which may take as long as a call.
type turnstile chan struct{}

func (t turnstile) enter() { t <- struct{}{} }
func (t turnstile) leave() { <-t }

func newPiece(source string) *piece { return &piece{source: source, calling: make(turnstile, 1)} }

// maxPieces bounds what is remembered of previews' posts. Where there are so many,
// those that nobody came for are among them: what they show is stated again.
const maxPieces = 4096

// remember keeps what is known of a preview's post until its reply, or its removal.
func (o *Outbox) remember(p *piece) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.pieces) >= maxPieces {
		clear(o.pieces)
	}
	o.pieces[p.d.ID] = p
}

// piece is what is known of a preview's post; nil for nothing.
func (o *Outbox) piece(delivery int64) *piece {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.pieces[delivery]
}

func (o *Outbox) forget(delivery int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.pieces, delivery)
}
