package adaptertest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"parley/adapters"
	"parley/ingest/event"
)

// payload is one envelope of a recording with the directory that applies to it.
type payload struct {
	name     string
	envelope event.Envelope
	people   people
	platform adapters.Platform
}

// line is one line of a recording, as replay reads it.
type line struct {
	Directory *struct {
		Users []struct {
			ID          string `json:"id"`
			DisplayName string `json:"display_name"`
			IsBot       bool   `json:"is_bot"`
		} `json:"users"`
		Channels []struct {
			ID   string `json:"id"`
			Name string `json:"name"`
			IsDM bool   `json:"is_dm"`
		} `json:"channels"`
		Self struct {
			TeamID       string `json:"team_id"`
			EnterpriseID string `json:"enterprise_id"`
			UserID       string `json:"user_id"`
			BotID        string `json:"bot_id"`
			AppID        string `json:"app_id"`
			Address      string `json:"address"`
		} `json:"self"`
	} `json:"directory"`
	Platform   event.Platform  `json:"platform"`
	Transport  string          `json:"transport"`
	ReceivedAt time.Time       `json:"received_at"`
	Body       json.RawMessage `json:"body"`
}

// people is the directory of one recording: the names and facts of its directory lines, and
// the channel types in its payloads.
type people struct {
	self  *event.Self
	users map[string]adapters.User
	types map[string]event.ChannelType
	state *State
}

var _ adapters.Directory = people{}

// Self, ChannelType, State and User implement adapters.Directory.
func (p people) Self() event.Self { return *p.self }

func (p people) ChannelType(channel string) event.ChannelType { return p.types[channel] }

func (p people) State() adapters.State { return p.state }

func (p people) User(_ context.Context, id string) (adapters.User, bool) {
	user, ok := p.users[id]
	return user, ok
}

// learn applies a directory line.
func (p people) learn(l line) {
	for _, u := range l.Directory.Users {
		p.users[u.ID] = adapters.User{DisplayName: u.DisplayName, IsBot: u.IsBot}
	}
	for _, c := range l.Directory.Channels {
		if c.IsDM {
			p.types[c.ID] = event.ChannelDirect
		}
	}
	*p.self = event.Self(l.Directory.Self)
}

// read returns the payloads of the recordings. It skips a line without an envelope, which
// only concerns replay.
func read(t *testing.T, recordings []string) (payloads []payload) {
	t.Helper()
	for _, pattern := range recordings {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			payloads = append(payloads, readLines(filepath.Base(file), content)...)
		}
	}
	return payloads
}

func readLines(file string, content []byte) (payloads []payload) {
	known := people{&event.Self{}, map[string]adapters.User{}, map[string]event.ChannelType{}, NewState()}
	for n, text := range bytes.Split(content, []byte("\n")) {
		var l line
		switch err := json.Unmarshal(text, &l); {
		case err != nil:
		case l.Directory != nil:
			known.learn(l)
		case l.Body != nil:
			payloads = append(payloads, payload{name: fmt.Sprintf("%s:%d", file, n+1), people: known, envelope: event.Envelope{
				Workspace: "acme", Platform: l.Platform, Transport: l.Transport, ReceivedAt: l.ReceivedAt, Body: l.Body,
			}})
		}
	}
	return payloads
}
