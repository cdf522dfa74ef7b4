package send

import (
	"sync"

	"parley/adapters"
	"parley/adapters/bluebubbles/call"
)

// The values of Settings.Working, which select the sign that the agent works.
const (
	WorkingTyping   = "typing"
	WorkingReaction = "reaction" // a tapback on the question
	WorkingOff      = "off"
)

// The values of Settings.ReadReceipts.
const (
	ReceiptsAnswered = "answered" // a chat is marked as read when we answer there
	ReceiptsOff      = "off"
)

// fileOver is the length in characters above which an answer is sent as a file.
const fileOver = 20_000

// Sender posts messages by one server. It is safe for concurrent use.
type Sender struct {
	client   *call.Client
	settings Settings
	read     sync.Map // the message after which a chat was last marked as read, by the chat's name
}

// Settings are the settings of a Sender. Each is the key of the configuration that has its name.
type Settings struct {
	PostRate              float64
	Working, ReadReceipts string
}

// New returns a sender that makes its calls by a client.
func New(client *call.Client, settings Settings) *Sender {
	return &Sender{client: client, settings: settings}
}

// Limits returns the configured limits. Messages shows no incomplete text, so there is no
// preview.
func (s *Sender) Limits() adapters.Limits {
	return adapters.Limits{
		PostRate: s.settings.PostRate, Timeout: s.client.Timeout, FileOver: fileOver,
		Preview: adapters.PreviewOff, Sign: s.client.MayBePrivate() && s.settings.Working != WorkingOff,
	}
}
