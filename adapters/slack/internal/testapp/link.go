package testapp

import (
	"bytes"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"parley/adapters"
	"parley/adapters/slack"
	"parley/adapters/slack/live"
	"parley/ingest/event"
)

// WaitLimit bounds every wait of a test, on the clock of its bubble.
const WaitLimit = 10 * time.Minute

// Recorder records the adapter's reports of its connection, and its log.
type Recorder struct {
	Ups    chan event.Self
	Downs  chan error
	Missed chan string // the channels
	Others chan int    // connections of other programs
	mu     sync.Mutex
	buffer bytes.Buffer
}

// NewRecorder returns a recorder of at most a thousand reports of each kind.
func NewRecorder() *Recorder {
	return &Recorder{Ups: make(chan event.Self, 1000), Downs: make(chan error, 1000), Missed: make(chan string, 1000), Others: make(chan int, 1000)}
}

// Write implements io.Writer, for the log.
func (l *Recorder) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buffer.Write(p)
}

// Log returns what was logged so far.
func (l *Recorder) Log() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buffer.String()
}

// NoWants are the wants of a workspace with the default settings.
func NoWants() adapters.Wants { return adapters.Wants{} }

// Link returns a link whose reports are recorded.
func (l *Recorder) Link() adapters.Link {
	return adapters.Link{
		Up:     func(self event.Self) { l.Ups <- self },
		Down:   func(err error) { l.Downs <- err },
		Missed: func(channel string, _ time.Time) { l.Missed <- channel },
		Others: func(n int) { l.Others <- n },
		Log:    slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Wants:  NoWants,
	}
}

// FastTimes make the waits after a failure short.
var FastTimes = live.Times{MinAge: time.Millisecond, BackoffMin: time.Millisecond, BackoffMax: 4 * time.Millisecond}

// SetTimes sets those times of an adapter's sockets that are not zero.
func SetTimes(adapter *slack.Adapter, times live.Times) {
	to, from := reflect.ValueOf(&adapter.Live.Times).Elem(), reflect.ValueOf(times)
	for i := range from.NumField() {
		if !from.Field(i).IsZero() {
			to.Field(i).Set(from.Field(i))
		}
	}
}
