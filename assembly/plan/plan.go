// Package plan has the state of a run as a card: its tasks, its progress and its workstreams.
package plan

import (
	"encoding/json"
	"strings"

	"parley/ingest/card"
)

// Status is the state of a task.
type Status string

// The statuses. A task without a status is a line of a plan without tasks.
const (
	Pending Status = "pending"
	Running Status = "running"
	Done    Status = "done"
	Failed  Status = "failed"
	Skipped Status = "skipped"
	Stopped Status = "stopped"
	// Unfinished is the status of a task that ran when its run ended well.
	Unfinished Status = "unfinished"
)

// Task is a task of a plan, or a workstream.
type Task struct {
	Title  string
	Status Status
	Words  string // say more about its status; empty for none
}

// Batch is the progress of many things of one kind.
type Batch struct {
	Text             string
	Completed, Total float64
}

// State is the state of a run. Its texts are those of agents, which are shown as they are: none is Markdown.
type State struct {
	Status      string // of its card, one of card.Statuses
	Title       string
	Tasks       []Task
	Batch       *Batch
	Notes       []string // warnings and the like, each with its sign
	Workstreams []Task
	End         string // how the run has ended, for people; empty for nothing to say
}

// The greatest lengths of texts, in characters.
const (
	maxTitle = 300
	maxTask  = 150
	maxNote  = 300
	maxTasks = 500 // of a plan
)

// ReadTasks returns the tasks in the details of a PLAN: a list of texts or of objects, by itself or as plan.tasks, plan, tasks or
// steps. Without such a list, each line of the text after the first is one.
func ReadTasks(text string, details json.RawMessage) (title string, tasks []Task) {
	title, rest, _ := strings.Cut(strings.TrimSpace(text), "\n")
	for _, one := range list(details) {
		if t, ok := task(one); ok && len(tasks) < maxTasks {
			tasks = append(tasks, t)
		}
	}
	if tasks != nil {
		return title, tasks
	}
	for line := range strings.Lines(rest) {
		if line = strings.TrimSpace(line); line != "" && len(tasks) < maxTasks {
			tasks = append(tasks, Task{Title: line})
		}
	}
	return title, tasks
}

// list returns the tasks in the details of a PLAN.
func list(details json.RawMessage) (tasks []json.RawMessage) {
	if json.Unmarshal(details, &tasks) == nil {
		return tasks
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(details, &members) != nil {
		return nil
	}
	for _, name := range []string{"plan", "tasks", "steps"} {
		if tasks = list(members[name]); tasks != nil {
			return tasks
		}
	}
	return nil
}

// task reads one task. It returns false for one without a title.
func task(raw json.RawMessage) (t Task, ok bool) {
	t.Status = Pending
	if json.Unmarshal(raw, &t.Title) == nil {
		return t, t.Title != ""
	}
	var members map[string]any
	if json.Unmarshal(raw, &members) != nil {
		return t, false
	}
	word := func(names ...string) string {
		for _, name := range names {
			if s, _ := members[name].(string); s != "" {
				return s
			}
		}
		return ""
	}
	t.Title = word("goal", "title", "name", "content", "text")
	t.Status = status(strings.ToLower(word("status", "state")))
	if members["done"] == true {
		t.Status = Done
	}
	return t, t.Title != ""
}

// status returns the status that an agent's word means.
func status(word string) Status {
	for _, s := range []struct {
		status Status
		begins []string
	}{
		{Done, []string{"done", "complete", "success", "finish"}},
		{Running, []string{"running", "in_progress", "in-progress", "in progress", "inprogress", "active", "working", "started"}},
		{Failed, []string{"fail", "error"}},
		{Skipped, []string{"skip", "cancel"}},
	} {
		for _, begin := range s.begins {
			if strings.HasPrefix(word, begin) {
				return s.status
			}
		}
	}
	return Pending
}

// ReadBatch returns the progress in a BATCH_PROGRESS; nil if its details have no total.
func ReadBatch(text string, details json.RawMessage) *Batch {
	var members map[string]any
	_ = json.Unmarshal(details, &members) // other details have none
	number := func(names ...string) float64 {
		for _, name := range names {
			if n, ok := members[name].(float64); ok {
				return n
			}
		}
		return 0
	}
	b := &Batch{Text: text, Completed: number("completed", "done", "current", "progress"), Total: number("total", "max")}
	if b.Total <= 0 {
		return nil
	}
	b.Completed = min(max(b.Completed, 0), b.Total)
	return b
}

// String returns the progress as a bar with its numbers.
func (b *Batch) String() string {
	bar := (&card.Part{Value: b.Completed, Max: b.Total}).Bar()
	if text := strings.Join(strings.Fields(b.Text), " "); text != "" {
		bar += ": " + text
	}
	return bar
}

// Ended gives the tasks that still run the status that they have after the end of the run.
func Ended(tasks []Task, as Status) {
	for i := range tasks {
		if tasks[i].Status == Running {
			tasks[i].Status = as
		}
	}
}

// Begins reports whether people get a post of the state: it has a plan or workstreams.
func (s *State) Begins() bool { return s.Title != "" || len(s.Tasks)+len(s.Workstreams) > 0 }

// IsEmpty reports whether there is nothing to show.
func (s *State) IsEmpty() bool {
	return s.Title == "" && len(s.Tasks)+len(s.Workstreams)+len(s.Notes) == 0 && s.Batch == nil
}
