package console

import (
	"context"

	"parley/cmd/parley/internal/operator"
)

// schedule is a schedule with the operations on it.
type schedule struct {
	operator.Schedule
	ChannelName string // empty if it is not known
	Acts        []act
}

func schedules(s *operator.Service, r request) (string, any, error) {
	page := r.page()
	page.Limit = 30 // each row has two forms
	list, err := s.Schedules(r.Context(), page)
	name, end := s.ChannelNames(r.Context(), r.by)
	defer end()
	items := make([]schedule, len(list.Items))
	for i, x := range list.Items {
		path, may := "/schedules/"+x.Workspace+"/"+x.ID+"/", r.isOperator()
		acts := []act{newAct(may, "run", path+"run", "Run now", "The agent is asked now, and its answer is posted as at the planned times.")}
		if x.Paused {
			acts = append(acts, newAct(may, "resume", path+"resume", "Resume", "The schedule asks again at its next time."))
		} else {
			acts = append(acts, newAct(may, "pause", path+"pause", "Pause", "The schedule asks no more until it is resumed. The times of the pause are left out."))
		}
		items[i] = schedule{x, name(x.Workspace, x.Channel, false), acts}
	}
	return "Schedules", struct {
		Items []schedule
		Next  neighbours
	}{items, r.beside(list.Next)}, err
}

// change does a change of the schedule of a form.
func change(f form, do func(context.Context, operator.Write, string, string) (operator.Schedule, error), said string) (string, error) {
	_, err := do(f.Context(), f.write(), f.PathValue("workspace"), f.PathValue("id"))
	return said, err
}

func runSchedule(s *operator.Service, f form) (string, error) {
	return change(f, s.RunSchedule, "The agent is asked now.")
}

func pauseSchedule(s *operator.Service, f form) (string, error) {
	return change(f, s.PauseSchedule, "The schedule is paused.")
}

func resumeSchedule(s *operator.Service, f form) (string, error) {
	return change(f, s.ResumeSchedule, "The schedule asks again.")
}
