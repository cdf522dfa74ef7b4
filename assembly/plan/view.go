package plan

import (
	"fmt"
	"sort"

	"parley/ingest/card"
	"parley/ingest/event"
)

// View returns the state as a card that fits. Of longer lists it shows the beginning, and says how many more there are.
func (s *State) View(fits func(v card.View) bool) card.View {
	most := max(len(s.Tasks), len(s.Workstreams), len(s.Notes))
	over := sort.Search(most+1, func(n int) bool { return !fits(s.view(n)) })
	return s.view(max(over-1, 0))
}

// view returns the state with at most a number of entries of each list.
func (s *State) view(most int) card.View {
	v := card.View{Status: s.Status}
	title := event.Line(s.Title, maxTitle)
	switch {
	case title != "":
	case len(s.Tasks) > 0:
		title = "Plan"
	case len(s.Workstreams) > 0:
		title = "Workstreams"
	}
	if title != "" {
		v.Parts = append(v.Parts, card.Part{Kind: card.KindTitle, Text: title + count(s.Tasks)})
	}
	v.Parts = append(v.Parts, entries(s.Tasks, most, "tasks")...)
	if s.Batch != nil {
		v.Parts = append(v.Parts, card.Part{Kind: card.KindProgress, Text: event.Line(s.Batch.Text, maxNote), Value: s.Batch.Completed, Max: s.Batch.Total})
	}
	v.Parts = append(v.Parts, entries(s.Workstreams, most, "workstreams")...)
	notes := card.Part{Kind: card.KindList}
	for _, n := range s.Notes[max(0, len(s.Notes)-most):] {
		notes.Items = append(notes.Items, card.Item{Text: event.Line(n, maxNote)})
	}
	if notes.Items != nil {
		v.Parts = append(v.Parts, notes)
	}
	if s.End != "" {
		v.Parts = append(v.Parts, card.Part{Kind: card.KindCaption, Text: s.End})
	}
	return v
}

// count tells how many tasks are done.
func count(tasks []Task) string {
	done, known := 0, 0
	for _, t := range tasks {
		if t.Status != "" {
			known++
		}
		if t.Status == Done {
			done++
		}
	}
	if known == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d of %d done)", done, known)
}

// entries returns at most a number of tasks, and a line about the others. Tasks without a status are a list.
func entries(tasks []Task, most int, name string) (parts []card.Part) {
	p := card.Part{Kind: card.KindTasks}
	for _, t := range tasks[:min(len(tasks), most)] {
		if t.Status == "" {
			p.Kind = card.KindList
		}
		p.Items = append(p.Items, card.Item{Text: event.Line(t.Title, maxTask), Status: string(t.Status), Words: event.Line(t.Words, maxTask)})
	}
	if p.Items != nil {
		parts = append(parts, p)
	}
	if more := len(tasks) - most; more > 0 {
		parts = append(parts, card.Part{Kind: card.KindCaption, Text: fmt.Sprintf("… and %d more %s", more, name)})
	}
	return parts
}
