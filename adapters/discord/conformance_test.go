package discord_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/adapters"
	"parley/adapters/adaptertest"
	"parley/adapters/discord"
	"parley/adapters/discord/discordtest"
	"parley/config/secret"
	"parley/ingest/event"
)

// The ids of the fake's server, channels and people.
const (
	gardenID, roomID, directID = "700000000000000001", "700000000000000002", "700000000000000003"
	mara, ash                  = "700000000000000004", "700000000000000005"
	canary                     = "canary-token"
)

// TestConformance runs the shared conformance test.
func TestConformance(t *testing.T) {
	adaptertest.Live(t, func(t *testing.T) adaptertest.Fake { return newConformanceFake(t).fake() })
}

// conformanceFake is the fake Discord of the shared conformance test.
type conformanceFake struct {
	*discordtest.Server
	adapter *discord.Adapter
	state   *adaptertest.State
	calls   atomic.Int64

	mu     sync.Mutex
	faults map[string][]chan struct{} // by route, one channel for each scripted fault; closed when the call has come
}

func newConformanceFake(t *testing.T) *conformanceFake {
	t.Helper()
	s := &conformanceFake{faults: map[string][]chan struct{}{}, state: adaptertest.NewState()}
	var ticks atomic.Int64 // two messages never have the same millisecond
	s.Server = startFake(t, discordtest.Options{
		Token: canary, Heartbeat: 250 * time.Millisecond, OnCall: s.called,
		Now: func() time.Time { return time.Now().Add(time.Duration(ticks.Add(2)) * time.Millisecond) },
	})
	s.adapter = newAdapter(s.Server, func(c *discord.Config) { c.Token, c.Working = secret.New(canary), discord.WorkingReaction })
	s.adapter.UseState(s.state)
	return s
}

// startFake starts a fake with a server, a channel, and two people. One of them has direct
// messages with the bot.
func startFake(t *testing.T, options discordtest.Options) *discordtest.Server {
	t.Helper()
	s, err := discordtest.Start(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	s.AddUser(discordtest.User{ID: mara, Username: "mara", GlobalName: "Mara"})
	s.AddUser(discordtest.User{ID: ash, Username: "ash", GlobalName: "Ash"})
	s.AddGuild(discordtest.Guild{ID: gardenID, Name: "garden", Nicks: map[string]string{}})
	s.SetChannel(discordtest.Channel{ID: roomID, Guild: gardenID, Name: "general"})
	s.SetChannel(discordtest.Channel{ID: directID, Type: discordtest.Direct, User: mara})
	return s
}

// newAdapter returns an adapter for a fake, with one shard and short time limits.
func newAdapter(s *discordtest.Server, change func(*discord.Config)) *discord.Adapter {
	config := discord.DefaultConfig()
	config.Token, config.APIURL, config.Shards, config.PostRate = secret.New(discordtest.Token), s.URL(), 1, 0
	if change != nil {
		change(&config)
	}
	adapter := discord.New("acme", config)
	adapter.SetFastTimes()
	adapter.UseState(adaptertest.NewState())
	return adapter
}

// fake returns the fake in the form that the conformance test uses.
func (s *conformanceFake) fake() adaptertest.Fake {
	return adaptertest.Fake{
		Adapter: s.adapter, Platform: discord.Platform(), Workspace: "acme", Transport: "gateway",
		Self:    event.Self{UserID: discordtest.BotUser, AppID: discordtest.App},
		Secrets: []string{canary},
		Room:    adaptertest.Place{ID: roomID, Name: "general"}, Direct: adaptertest.Place{ID: directID},
		Asker: adaptertest.Person{ID: mara, Name: "Mara", Mention: "<@" + mara + ">"},
		Other: adaptertest.Person{ID: ash, Name: "Ash", Mention: "<@" + ash + ">"},
		Say:   s.say, Edit: s.edit, Delete: s.remove, React: s.react, Open: s.open, Share: s.share, Forge: s.forge,
		Shown: s.shown, Working: s.working, Calls: func() int { return int(s.calls.Load()) },
		Fault: s.fault, Cut: func() { s.Drop(discordtest.Forget) }, Revoke: s.Revoke, Close: func() { _ = s.Close() },
	}
}

// called counts a call, and signals a test that waits for it. The registration of the commands runs
// in the background.
func (s *conformanceFake) called(c discordtest.Call) {
	if c.Route != discordtest.Upsert {
		s.calls.Add(1)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if waiting := s.faults[c.Route]; len(waiting) > 0 {
		close(waiting[0])
		s.faults[c.Route] = waiting[1:]
	}
}

// routes maps the calls of the conformance test to Discord's routes. Find reads only after
// minutes, so Read has none.
var routes = map[adaptertest.Call]string{
	adaptertest.Who: discordtest.GetGateway, adaptertest.Connect: discordtest.Connect,
	adaptertest.Post: discordtest.Post, adaptertest.Upload: discordtest.Post,
	adaptertest.Edit: discordtest.Edit, adaptertest.Remove: discordtest.Remove,
	adaptertest.ShowWorking: discordtest.React, adaptertest.ClearWorking: discordtest.Unreact,
	adaptertest.ReadChannel: discordtest.Read, adaptertest.Name: discordtest.GetUser,
}

var faults = map[adaptertest.Failure]discordtest.Fault{
	adaptertest.Limited: discordtest.RateLimited(adaptertest.Wait), adaptertest.Denied: {Status: http.StatusForbidden, Code: 50013},
	adaptertest.Broken: {Status: http.StatusServiceUnavailable}, adaptertest.BrokenLate: {Status: http.StatusServiceUnavailable, Effect: true},
	adaptertest.Lost: {Cut: true}, adaptertest.LostLate: {Cut: true, Effect: true},
	adaptertest.Stuck: {Hold: make(chan struct{})},
}

func (s *conformanceFake) fault(call adaptertest.Call, failure adaptertest.Failure) <-chan struct{} {
	route := routes[call]
	if route == "" {
		return nil
	}
	met := make(chan struct{})
	s.mu.Lock()
	s.faults[route] = append(s.faults[route], met)
	s.mu.Unlock()
	s.Script(route, faults[failure])
	return met
}

func (s *conformanceFake) say(to adapters.Address, text string) adaptertest.Delivery {
	m, e := s.Say(discordtest.Message{Channel: to.Channel, Author: mara, Content: text})
	return adaptertest.Delivery{ID: m.ID, Acknowledged: e.Acked}
}

func (s *conformanceFake) open(text string) (string, adapters.Address) {
	m, _ := s.Say(discordtest.Message{Channel: roomID, Author: mara, Content: text})
	s.SetChannel(discordtest.Channel{ID: m.ID, Guild: gardenID, Type: discordtest.PublicThread, Parent: roomID})
	return m.ID, adapters.Address{Channel: m.ID}
}

// place returns the channel of a message.
func (s *conformanceFake) place(id string) string {
	for _, channel := range []string{roomID, directID} {
		if s.Has(channel, id) {
			return channel
		}
	}
	return roomID
}

func (s *conformanceFake) edit(id, text string) { s.Change(s.place(id), id, text) }

func (s *conformanceFake) remove(id string) { s.Delete(s.place(id), id) }

func (s *conformanceFake) react(id string) { s.AddReaction(s.place(id), id, mara, "🎉") }

func (s *conformanceFake) forge(post adapters.Post) {
	s.Say(discordtest.Message{Channel: post.To.Channel, Author: ash, Content: post.Text, Nonce: post.Key})
}

func (s *conformanceFake) share(file adaptertest.File) (event.Attachment, bool) {
	f := discordtest.File{Name: "a.bin", MimeType: "application/octet-stream", Content: file.Content}
	switch file.Where {
	case adaptertest.SentOn:
		f.Redirect = s.CDN() + "/attachments/" + roomID + "/moved"
		s.AddFileAt("/attachments/"+roomID+"/moved", f.Content)
	case adaptertest.Unreadable:
		return event.Attachment{}, false
	case adaptertest.Elsewhere:
		f.URL = file.At
	case adaptertest.SentElsewhere:
		f.Redirect = file.At
	}
	f = s.AddFile(roomID, f)
	m, _ := s.Say(discordtest.Message{Channel: roomID, Author: mara, Files: []discordtest.File{f}})
	frame, _ := json.Marshal(map[string]any{"op": 0, "t": "MESSAGE_CREATE", "d": map[string]any{
		"id": m.ID, "channel_id": roomID, "author": map[string]any{"id": mara}, "attachments": []any{map[string]any{"id": f.ID, "filename": f.Name}}}})
	directory := adapters.Directory(stateDirectory{state: s.state})
	if _, err := s.adapter.Normalize(context.Background(), event.Envelope{Workspace: "acme", Body: frame}, directory); err != nil {
		panic(fmt.Sprint("normalize: ", err))
	}
	return event.Attachment{ID: f.ID, Name: f.Name}, true
}

func (s *conformanceFake) shown(to adapters.Address) (all []adaptertest.Shown) {
	for _, p := range s.Posts(to.Channel) {
		shown := adaptertest.Shown{ID: p.ID, Text: p.Content}
		for _, f := range p.Files {
			shown.Files = append(shown.Files, f.Content)
		}
		all = append(all, shown)
	}
	return all
}

func (s *conformanceFake) working(sign adapters.Sign) bool {
	return s.Reactions(sign.To.Channel, sign.Message) > 0
}

// stateDirectory is a directory that has only a state and our identity.
type stateDirectory struct {
	self  event.Self
	state adapters.State
}

func (d stateDirectory) Self() event.Self                   { return d.self }
func (stateDirectory) ChannelType(string) event.ChannelType { return "" }
func (stateDirectory) User(context.Context, string) (adapters.User, bool) {
	return adapters.User{}, false
}
func (d stateDirectory) State() adapters.State { return d.state }
