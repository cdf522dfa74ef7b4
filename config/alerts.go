package config

import (
	"fmt"
	"slices"
	"time"

	"parley/ingest/event"
)

// Alerts are the messages to operators about troubles. Without To.Workspace there are none.
type Alerts struct {
	To AlertsTo `yaml:"to"`
	// On are the kinds of troubles, of AlertKinds.
	On []string `yaml:"on"`
	// Every is the time after which a trouble that goes on is told again.
	Every time.Duration `yaml:"every"`
}

// AlertsTo is the place of the messages. Either Channel or User is set.
type AlertsTo struct {
	Workspace string `yaml:"workspace"`
	Channel   string `yaml:"channel"` // the platform's id
	User      string `yaml:"user"`    // the platform's id
}

// The kinds of troubles.
const (
	AlertAgent      = "agent"       // an agent fails
	AlertConnection = "connection"  // no events of a workspace arrive
	AlertDeadLetter = "dead_letter" // a message could not be recorded
	AlertDelivery   = "delivery"    // a post was refused, or nobody knows whether it arrived
	AlertDisk       = "disk"        // little space is left, or files cannot be stored
	AlertExclusive  = "exclusive"   // another program has the same account
)

// AlertKinds returns all kinds of troubles.
func AlertKinds() []string {
	return []string{AlertAgent, AlertConnection, AlertDeadLetter, AlertDelivery, AlertDisk, AlertExclusive}
}

// defaultAlerts returns the settings that parley.yaml changes.
func defaultAlerts() Alerts { return Alerts{On: AlertKinds(), Every: time.Hour} }

// faults returns the faults of the settings by key.
func (a Alerts) faults() (faults event.FieldErrors) {
	isSet := a.To != AlertsTo{}
	faults.Check(!isSet || a.To.Workspace != "", "to.workspace", "is required: the id of a workspace")
	faults.Check(!isSet || (a.To.Channel != "") != (a.To.User != ""), "to", "must have either a channel or a user, by the platform's id")
	for i, kind := range a.On {
		faults.Check(slices.Contains(AlertKinds(), kind), fmt.Sprintf("on[%d]", i), "must be agent, connection, dead_letter, delivery, disk or exclusive")
	}
	faults.Check(a.Every >= time.Minute, "every", "must be at least 1m")
	return faults
}
