// Package assembly turns a thread into the input of one agent run; it does no
// input or output.
//
// It alone writes "[Name]:" headers and thread-context blocks, and it writes
// them from what is stored, never by reading them off a text: assembling twice
// gives the same as once, and no name or body can forge a header.
package assembly

import (
	"time"

	"parley/ingest/event"
)

// Role is who a message of an agent's input speaks for.
type Role string

// The roles of an agent's input.
const (
	RoleSystem    Role = "system"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
)

// Line is one stored message, as the thread shows it now.
type Line struct {
	ExternalID string
	Seq        int64     // thread_seq; 0 for a quotation
	SentAt     time.Time // the platform's time, or ours where it tells none
	Content    string
	Metadata   event.Metadata
	Files      []File
	// Own says that the agent being asked wrote it.
	Own bool
	// Version is the contract version it was stored under; 0 has its header baked in.
	Version int
	// Quoted and Forwarded are what stands inside the message but is not its
	// content: lines of the turn's block.
	Quoted    *event.Quote
	Forwarded []event.Quote
}

// File is an attachment as an agent may see it.
type File struct {
	Name     string
	MimeType string
	Size     int64
	// Bucket and Path are where the copy is kept (package attach); Path is empty
	// where there is none.
	Bucket, Path string
}

// Turn is one time that the agent was asked, or is being asked.
type Turn struct {
	// OpenedOn is the message of another thread on which this thread was
	// opened, in the thread's first turn; nil elsewhere.
	OpenedOn *Line
	// Root is the thread's first message, if it belongs to this turn's block.
	Root *Line
	// Context are the newest passive and read messages of the block, without
	// Root, in any order.
	Context []Line
	// Earlier is how many messages were left out between Root and Context;
	// those that the window leaves out of Context are added to it.
	Earlier int
	// Gap says that what was said between them could not be read, or not all of it.
	Gap bool
	// Messages are what asked for the run, in any order; never empty. A
	// thread_context in the metadata of one stands instead of the block.
	Messages []Line
	// Reply is what the agent answered; nil for the current turn and for one
	// that ended without an answer.
	Reply *Line
}

// Window bounds what an agent reads of a thread. The current turn stands
// whatever it says; the zero Window holds no more than that.
type Window struct {
	Turns  int // at most so many turns, the current one among them
	Bytes  int // at most so many bytes of text, quotations counted wherever they stand
	Thread int // at most so many lines of a context block beside the root
}

// Input is what an agent is given.
type Input struct {
	// ThreadID is the thread's UUID.
	ThreadID string
	// RunID stays the same when a run is tried again.
	RunID    string
	Messages []Message
	// Said is the current turn's messages as they were typed, without headers,
	// for an agent that wants no more than that.
	Said []Said
}

// Said is one message of the current turn: what was typed, and with which files.
type Said struct {
	Content string
	Files   []string // their names
}

// Message is one message of an agent's input.
type Message struct {
	Role  Role
	Parts []Part // at least one; a message's text is one part, before its files
}

// Part is a text or a file.
type Part struct {
	Text string
	File *File // nil for a text
}
