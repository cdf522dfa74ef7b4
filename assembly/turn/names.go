package turn

import (
	"fmt"

	"parley/ingest/journal/runs"
	"parley/ingest/stream"
)

// names gives the messages of an attempt the ids of their activities, by which clients replace chunks.
type names struct {
	nameless map[string]nameless // by workstream
	last     string              // the activity of the last chunk of main; empty for none
	ended    map[string]bool     // the activities that a whole message has ended
}

// nameless is the activity of the chunks of a workstream that came without one. When a whole message
// has taken its text, the next chunk begins a further one.
type nameless struct {
	number int
	open   bool
}

// of returns the id of a message's activity. A whole message without an id takes that of the nameless
// activity if it takes its text. An ANSWER without one replaces the last chunks of main otherwise, but
// never those of an activity that a whole message has ended. An attempt has other ids than those before
// it, because it begins its texts again.
func (n *names) of(m stream.Message, run *runs.Run) (id string) {
	if n.nameless == nil {
		n.nameless, n.ended = map[string]nameless{}, map[string]bool{}
	}
	chunk, own := m.Type == stream.StreamingChunk, n.nameless[m.Workstream]
	switch {
	case m.ActivityID != "":
		id = attempted(m.ActivityID, run)
	case chunk:
		own.open = true
		id = own.id(m, run)
	case m.Takes() && own.open:
		id = own.id(m, run)
		own = nameless{number: own.number + 1}
	case m.Type == stream.Answer && m.OfMain() && n.last != "" && !n.ended[n.last]:
		id = n.last
	case m.Type == stream.Answer:
		id = own.id(m, run)
		own = nameless{number: own.number + 1}
	}
	n.nameless[m.Workstream] = own
	switch {
	case chunk && m.OfMain():
		n.last = id
	case !chunk && id != "":
		n.ended[id] = true
	}
	return id
}

// id returns the id of a nameless activity.
func (n nameless) id(m stream.Message, run *runs.Run) string {
	id := runs.AnswerActivity(run.ID)
	if !m.OfMain() {
		id += "/" + m.Workstream
	}
	if n.number > 0 {
		id = fmt.Sprintf("%s-%d", id, n.number)
	}
	return attempted(id, run)
}

// attempted returns the id of an activity in an attempt. An answer that came later ends what its agent has streamed, and begins nothing
// again.
func attempted(id string, run *runs.Run) string {
	if run.EventSeq > 0 && run.Answer == nil {
		return fmt.Sprintf("%s/%d", id, run.EventSeq)
	}
	return id
}
