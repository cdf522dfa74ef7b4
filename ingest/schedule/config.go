package schedule

import (
	"cmp"
	"fmt"
	"unicode/utf8"

	"parley/ingest/event"
	"parley/ingest/journal/schedules"
)

// Config is a schedule in the file of a workspace.
type Config struct {
	ID string `yaml:"id"`
	// Cron has five fields, and is read in TimeZone, which is that of the workspace if it is empty.
	Cron     string `yaml:"cron"`
	TimeZone string `yaml:"time_zone"`
	To       To     `yaml:"to"`
	// Prompt is the question to the agent. An empty Agent is that of the channel.
	Prompt string `yaml:"prompt"`
	Agent  string `yaml:"agent"`
	// Thread is ThreadNew or ThreadSame; empty for ThreadNew.
	Thread string `yaml:"thread"`
	// Missed is MissedSkip or MissedOnce; empty for MissedSkip.
	Missed string `yaml:"missed"`
	Paused bool   `yaml:"paused"`
}

// To is the place of a schedule. One of its fields is set, with the platform's id.
type To struct {
	Channel string `yaml:"channel"`
	User    string `yaml:"user"`
}

// The threads in which a schedule goes on.
const (
	ThreadNew  = "new"  // each answer is a post at the top of the channel
	ThreadSame = "same" // further answers are replies to the first one
)

// The treatments of ticks that a downtime has missed.
const (
	MissedSkip = "skip"
	MissedOnce = "once" // the last one runs, if it is younger than the time between two ticks, and than a day
)

// Validate returns every fault by key, without any value.
func (c *Config) Validate() (faults event.FieldErrors) {
	if err := schedules.CheckCron(c.Cron); err != nil {
		faults.Check(false, "cron", err.Error())
	}
	if err := schedules.CheckZone(c.TimeZone); err != nil {
		faults.Check(false, "time_zone", err.Error())
	}
	faults.Check((c.To.Channel == "") != (c.To.User == ""), "to", "must have one of channel and user, with the platform's id")
	faults.Check(c.Prompt != "" && utf8.RuneCountInString(c.Prompt) <= maxPrompt, "prompt", fmt.Sprintf("must have 1 to %d characters", maxPrompt))
	thread, missed := cmp.Or(c.Thread, ThreadNew), cmp.Or(c.Missed, MissedSkip)
	faults.Check(thread == ThreadNew || thread == ThreadSame, "thread", "must be new or same")
	faults.Check(missed == MissedSkip || missed == MissedOnce, "missed", "must be skip or once")
	return faults
}

// stored returns the schedule in the form in which it is stored; zone is the time zone of its workspace.
func (c *Config) stored(workspace, zone string) schedules.Schedule {
	return schedules.Schedule{Workspace: workspace, ID: c.ID, Plan: schedules.Plan{
		Timing: schedules.Timing{Cron: c.Cron, TimeZone: cmp.Or(c.TimeZone, zone)}, Agent: c.Agent, Prompt: c.Prompt,
		Channel: c.To.Channel, User: c.To.User, Same: c.Thread == ThreadSame, Once: c.Missed == MissedOnce, Off: c.Paused,
	}}
}
