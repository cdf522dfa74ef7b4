package replay

import (
	"cmp"
	"context"
	"maps"
	"strings"
	"sync"

	"parley/adapters"
	"parley/ingest/event"
)

// Directory answers lookups from a recording's directory lines. It does not know a user whom
// no line names; the caller then uses the id. It is safe for concurrent use.
type Directory struct {
	mu     sync.Mutex
	users  map[string]adapters.User
	direct map[string]event.ChannelType
	names  map[string]string // of channels
	topics map[string]string // of channels
	self   event.Self
	learnt map[event.Platform]event.Self
}

// NewDirectory returns an empty directory.
func NewDirectory() *Directory {
	return &Directory{users: map[string]adapters.User{}, direct: map[string]event.ChannelType{}, names: map[string]string{}, topics: map[string]string{},
		learnt: map[event.Platform]event.Self{}}
}

// Add applies a directory line to all later lookups.
func (d *Directory) Add(line *DirectoryLine) {
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.Copy(d.users, line.Users)
	maps.Copy(d.direct, line.Channels)
	maps.Copy(d.names, line.ChannelNames)
	maps.Copy(d.topics, line.Topics)
	if s := line.Self; s != nil {
		d.self = *s
	}
}

// Learn records our own user id from a payload, for a recording whose directory lines do not
// give it. The first one counts. Learn ignores team and app: with them, replay would refuse
// payloads of other teams and apps.
func (d *Directory) Learn(platform event.Platform, self event.Self) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.learnt[platform].UserID == "" {
		d.learnt[platform] = event.Self{UserID: self.UserID}
	}
}

// Facts returns the facts that the recording contains about a platform.
func (d *Directory) Facts(platform event.Platform) adapters.Facts { return facts{d, platform} }

type facts struct {
	*Directory
	platform event.Platform
}

// Self implements adapters.Facts.
func (f facts) Self() event.Self {
	f.mu.Lock()
	defer f.mu.Unlock()
	self := f.self
	self.UserID = cmp.Or(self.UserID, f.learnt[f.platform].UserID)
	return self
}

// ChannelType implements adapters.Facts.
func (f facts) ChannelType(id string) event.ChannelType {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.direct[id]
}

// User implements adapters.Directory.
func (d *Directory) User(_ context.Context, id string) (adapters.User, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	u, ok := d.users[id]
	return u, ok
}

// Token returns the name behind a token of a user or a channel, such as "<@U06STGBF4Q0>".
func (d *Directory) Token(token string) (string, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	id := strings.Trim(token, "<@#>")
	if strings.HasPrefix(token, "<#") {
		name, ok := d.names[id]
		return name, ok
	}
	u, ok := d.users[id]
	return u.DisplayName, ok
}

// Place returns the names of a channel's place. parent is the channel of a thread; empty for none.
func (d *Directory) Place(channel, parent string) event.Place {
	d.mu.Lock()
	defer d.mu.Unlock()
	if parent == "" {
		return event.Place{Channel: d.names[channel], Topic: d.topics[channel]}
	}
	return event.Place{Channel: d.names[parent], Topic: d.topics[parent], Thread: d.names[channel]}
}
