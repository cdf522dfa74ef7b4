package storage

import "strings"

// The first words of the messages that tell other nodes of a change: of a run, of a thread's messages,
// and of an actor's news. The readers of a change wait for the same words.
const (
	OfRun    = "run "
	OfThread = "messages "
	OfNews   = "news "
)

// Follow returns a channel that gets a value after each change of a thing on this node, and soon
// after most changes on other nodes. The caller ends with stop.
func (db *DB) Follow(words string) (changed <-chan struct{}, stop func()) {
	return db.followers.Wait(words)
}

// Changed wakes the readers of a thing on this node and, if tell is set, on others.
func (db *DB) Changed(words string, tell bool) {
	db.followers.Wake(words)
	if notifier, ok := db.Engine.(Notifier); ok && tell {
		notifier.Notify("", words)
	}
}

// Heard takes words that another node sent by the engine's Notify. It returns false if they
// are not the journal's.
func (db *DB) Heard(words string) bool {
	ours := strings.HasPrefix(words, OfRun) || strings.HasPrefix(words, OfThread) || strings.HasPrefix(words, OfNews)
	if ours {
		db.followers.Wake(words)
	}
	return ours
}

// Missed wakes all readers, because words of other nodes may have been lost.
func (db *DB) Missed() { db.followers.WakeAll() }
