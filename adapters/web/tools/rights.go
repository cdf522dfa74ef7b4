package tools

import (
	"fmt"

	"parley/adapters/web/access"
	"parley/ingest/event"
)

// The threads that an agent may read during a run.
const (
	ReadThread    = "thread"    // the run's thread
	ReadChannel   = "channel"   // the threads of its channel
	ReadWorkspace = "workspace" // those threads of its workspace that the people who ask can see
)

// Rights are the setting that bounds an agent's use of the tools.
type Rights struct {
	// Read is ReadThread, ReadChannel or ReadWorkspace. Empty is ReadThread; a model is then offered no tools, unless it may post.
	Read string `yaml:"read"`
	// Post are the places where the agent may speak first and react: W is a workspace, W:CHANNEL one of its channels.
	Post []string `yaml:"post"`
	// Schedule says that the agent may have itself asked later; nil for yes.
	Schedule *bool `yaml:"schedule"`
}

// schedules reports whether the agent may have itself asked later.
func (r Rights) schedules() bool { return r.Schedule == nil || *r.Schedule }

// Offers reports whether a model is offered the tools.
func (r Rights) Offers() bool { return r.Read != "" || len(r.Post) > 0 }

// Validate returns every fault by key.
func (r Rights) Validate() event.FieldErrors {
	var faults event.FieldErrors
	faults.Check(r.Read == "" || r.Read == ReadThread || r.Read == ReadChannel || r.Read == ReadWorkspace, "read", "must be thread, channel or workspace")
	for i, place := range r.Post {
		faults.Check(access.IsPlace(place), fmt.Sprintf("post[%d]", i), "must be the id of a workspace, or id:channel")
	}
	return faults
}
