package send

import (
	"time"

	"parley/adapters"
	"parley/adapters/slack/call"
)

// Sender posts messages in one team, and changes them. It is safe for concurrent use.
type Sender struct {
	client   *call.Client
	settings Settings
	state    adapters.State // nil before UseState
}

// Settings are the settings of a Sender. Each is the key of the configuration that has its name.
type Settings struct {
	PostRate                           float64
	FileOver                           int
	Preview                            adapters.Preview
	PreviewEvery                       time.Duration
	Working, WorkingText, WorkingEmoji string
}

// New returns a sender that makes its calls by a client.
func New(client *call.Client, settings Settings) *Sender {
	return &Sender{client: client, settings: settings}
}

// Limits returns the configured limits, and Slack's limit for streams.
func (s *Sender) Limits() adapters.Limits {
	limits := adapters.Limits{
		PostRate: s.settings.PostRate, Timeout: s.client.Timeout, FileOver: s.settings.FileOver,
		Preview: s.settings.Preview, PreviewEvery: s.settings.PreviewEvery, Sign: s.settings.Working != WorkingOff,
	}
	if s.settings.Working == WorkingStatus {
		limits.SignText, limits.SignEvery = maxStatus, statusEvery
	}
	return limits
}
