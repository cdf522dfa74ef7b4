// Package assembly turns a thread into the input of one agent run, without I/O.
//
// Only this package writes "[Name]:" headers and thread-context blocks. It writes them
// from stored metadata and never reads them from a text. So assembling twice gives the
// same result as assembling once, and no name or body can forge a header.
package assembly

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"parley/assembly/runinput"
	"parley/config/secret"
	"parley/ingest/event"
	"parley/ingest/stream"
)

// Role is the role of a message in an agent's input.
type Role string

// The roles of an agent's input.
const (
	RoleSystem    Role = "system"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	// RoleTool is the role of a tool's result, which a client of the run protocol gave.
	RoleTool Role = "tool"
)

// Line is one stored message, as the thread shows it now.
type Line struct {
	// ID is the message's UUID. It is empty for a quotation.
	ID         string
	ExternalID string
	Seq        int64     // thread_seq; 0 for a quotation
	SentAt     time.Time // the platform's time, or ours if the platform gives none
	Content    string
	Metadata   event.Metadata
	Files      []File
	// Own means that the asked agent wrote the message.
	Own bool
	// System means that Parley itself wrote it. It has no header.
	System bool
	// Parley means that a schedule, an operator, or an agent that has launched a workstream wrote the message. It has a
	// header.
	Parley bool
	// Version is the contract version of the row. In version 0, the content includes a
	// header.
	Version int
	// Names are the names behind tokens of the content that came with the message.
	Names event.Names
	// Quoted and Forwarded are the messages inside this message. They are not its
	// content but lines of the turn's block.
	Quoted    *event.Quote
	Forwarded []event.Quote
}

// File is an attachment as an agent may see it.
type File struct {
	Name     string
	MimeType string
	Size     int64
	// Bucket and Path locate the stored copy (package attach). Without a copy, Path is
	// empty.
	Bucket, Path string
	// Words are the text of the file, which the input has instead of the file. They are empty for
	// a file that is only named.
	Words string
	// Document says that it is a document which the agent takes.
	Document bool
}

// IsPicture reports whether the file is a picture by its type.
func (f *File) IsPicture() bool { return strings.HasPrefix(f.MimeType, "image/") }

// IsDocument reports whether a file is a document by its type or its name.
func IsDocument(name, mimeType string) bool {
	return mimeType == "application/pdf" || strings.HasSuffix(strings.ToLower(name), ".pdf")
}

// Turn is one request to the agent: an earlier one, or the current one.
type Turn struct {
	// OpenedOn are the messages of another thread on which this thread was opened, in their order:
	// the questions and the answer of a turn, or one message. It is empty except in the thread's
	// first turn.
	OpenedOn []Line
	// Root is the thread's first message, if it belongs to this turn's block.
	Root *Line
	// Context are the newest passive messages of the block and those that were read from
	// the platform as context, without Root, in any order.
	Context []Line
	// Earlier is the number of messages that the caller left out between Root and
	// Context. Assemble adds the number of messages that it leaves out of Context.
	Earlier int
	// Gap means that some messages between Root and Context could not be read.
	Gap bool
	// Messages are the messages that asked for the run, in any order. A thread_context in
	// their metadata replaces the block. There is at least one, unless there is a reply:
	// they may have been deleted after it.
	Messages []Line
	// Reply is the agent's answer. It is nil for the current turn, and for a turn that
	// ended without an answer.
	Reply *Line
}

// Window bounds the part of a thread that an agent reads. It always contains the current
// turn; the zero Window contains nothing else.
type Window struct {
	Turns  int // maximum number of turns, with the current one
	Bytes  int // maximum number of bytes of text; every quotation counts, shown or not
	Thread int // maximum number of lines of a context block, without the root
}

// Input is the input of an agent.
type Input struct {
	// ThreadID is the thread's UUID.
	ThreadID string
	// RunID is the same for every attempt of a run.
	RunID string
	// Workspace and Platform are the thread's place.
	Workspace string
	Platform  event.Platform
	Messages  []Message
	// Resume is the question that the turn answers; nil for none.
	Resume *Resume
	// Taken says that an earlier attempt of the run ended after Take.
	Taken bool
	// Take notes durably that the agent has taken the run, for agents that must not be asked
	// twice.
	Take func() error
	// Untake takes Take back: the agent has refused the run.
	Untake func() error
	// Session is the text that the agent has kept about its conversation of the thread; empty for a new conversation.
	// KeepSession keeps it durably for later runs, and "" keeps nothing. With take, the same step does what Take does. Only an agent of turn.KeepsSessions has them.
	Session     string
	KeepSession func(session string, take bool) error
	// Asking reports whether the run has ended with a question that people may still answer, or whose answer is for a run that has not ended. An
	// agent that waits for them calls it now and then. Only an agent of turn.KeepsSessions has it.
	Asking func() (bool, error)
	// Stay keeps the thread's work on this node after the run, until leave is called: the answer to a question must reach the process that waits
	// for it. Only an agent of turn.KeepsSessions has it.
	Stay func() (leave func())
	// Began lets the time of the run begin now. An agent calls it after it has waited for a place for the run.
	Began func()
	// Push is where the agent's server may report that its work has gone on. Only an agent of turn.WorksOn has it.
	Push Push
	// Choices are the settings that the agent has offered in the thread, with the values that people have chosen. Offer offers them, or tells of their
	// present values. Only an agent of turn.OffersChoices has them.
	Choices []stream.Choice
	Offer   func([]stream.Choice) error
	// Measure takes the usage that a model's server reports, before the agent ends; nil if nobody needs
	// it. It is called as emit is.
	Measure func(Usage)
	// Given has the tools, context, state and further messages of a client of the run
	// protocol. An agent whose protocol has these takes them from here.
	Given runinput.Rest
	// Said are the messages of the current turn as their authors typed them, without
	// headers, for an agent that needs nothing else.
	Said []Said
	// Speakers are the names of the window's authors.
	Speakers Speakers
	// Notes are facts beside the messages.
	Notes Notes
	// Tools are Parley's own functions, which the agent may call; none for most runs. An agent that can be asked
	// again gives its calls to Called at the end of its request, with the text before them, instead of an answer. Kept is
	// what its provider wants back with them: see Message.Kept.
	// An agent that goes on meanwhile makes them with Call, which returns the result.
	Tools  []runinput.Tool
	Called func(text string, calls []runinput.Call, kept json.RawMessage)
	Call   func(ctx context.Context, call runinput.Call) (result string, err error)
	// RunToken admits the agent to Parley's tools while the run lasts; unset for none.
	RunToken secret.Value
	// Step is the number of the run's earlier requests that ended with calls.
	Step int
}

// Push is an address of ours, and the token that admits a report about the run there; both empty if there is none.
type Push struct {
	URL   string
	Token secret.Value
}

// RequestID is the id of the run, and for a further request about it, one that differs.
func (in *Input) RequestID() string {
	if in.Step == 0 {
		return in.RunID
	}
	return fmt.Sprintf("%s-%d", in.RunID, in.Step+1)
}

// Usage is the report of a model's server about a request.
type Usage struct {
	Finish              string // the model's own word for the end of its answer, such as "stop"
	TokensIn, TokensOut int64  // 0 if the server sent none
}

// Resume is an agent's question and the answer to it.
type Resume struct {
	RunID   string          // of the run that asked
	Details json.RawMessage // of its REQUEST_INPUT
	// Answered is false if nobody answered in time.
	Answered bool
	Option   string // the id of the chosen option; empty for other words
	Text     string // as typed, or the label of the pressed button
}

// Said is one message of the current turn: the typed text and its files.
type Said struct {
	ID       string // a UUID
	Content  string
	Metadata []byte // a JSON object in the contract's terms
	Files    []File
}

// Message is one message of an agent's input.
type Message struct {
	// ID is the UUID of the thread's message; of a block "context-" and the UUID of the
	// turn's first message. It is the same in every run.
	ID    string
	Role  Role
	Parts []Part // at least one; the text of a message is one part, before its files
	// Calls are the calls of functions in an assistant's message. CallID is the id of the call that a
	// tool's message answers.
	Calls  []runinput.Call
	CallID string
	// Kept is the data that the provider of an agent needs back with the calls of its model, such as the model's thoughts and
	// their signatures. Only the kind of agent that wrote it reads it, and no person sees it.
	Kept json.RawMessage
	// Named are the parts in which all files are only named; nil if Parts have the words of none.
	Named []Part
}

// Part is a text or a file.
type Part struct {
	Text string
	File *File // nil for a text
}
