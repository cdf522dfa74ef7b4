package send

import (
	"context"
	"time"

	"parley/adapters"
	"parley/adapters/discord/call"
	"parley/adapters/discord/memory"
)

// Sender posts messages in one workspace, and changes them. It is safe for concurrent use.
type Sender struct {
	client    *call.Client
	memory    *memory.Memory
	workspace string // its name in thread keys
	settings  Settings
	list      func(context.Context, adapters.Post) ([]string, error)
}

// Settings are the settings of a sender. Each is the key of the configuration that has its name.
type Settings struct {
	PostRate     float64
	FileOver     int
	Preview      adapters.Preview
	PreviewEvery time.Duration
	Working      string
	Reply        bool
}

// New returns a sender that makes its calls by a client. list lists the messages of ours that
// look like a post, as an [adapters.Lister] does.
func New(c *call.Client, m *memory.Memory, workspace string, settings Settings, list func(context.Context, adapters.Post) ([]string, error)) *Sender {
	return &Sender{client: c, memory: m, workspace: workspace, settings: settings, list: list}
}

// Limits returns the configured limits.
func (s *Sender) Limits() adapters.Limits {
	limits := adapters.Limits{
		PostRate: s.settings.PostRate, PostText: maxText, Timeout: s.client.Timeout, FileOver: s.settings.FileOver,
		Preview: s.settings.Preview, PreviewEvery: s.settings.PreviewEvery, Sign: s.settings.Working != WorkingOff,
	}
	if s.settings.Working == WorkingTyping {
		limits.SignEvery = typingEvery
	}
	return limits
}
