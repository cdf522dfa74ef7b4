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
	"parley/adapters/discord/internal/testapp"
	"parley/adapters/discord/send"
	"parley/config/secret"
	"parley/ingest/event"
)

const canary = "canary-token"

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
	s.Server = testapp.StartServer(t, discordtest.Options{
		Token: canary, Heartbeat: time.Second, OnCall: s.called,
		Now: func() time.Time { return time.Now().Add(time.Duration(ticks.Add(2)) * time.Millisecond) },
	})
	s.adapter = testapp.NewAdapter(s.Server, func(c *discord.Config) { c.Token, c.Working = secret.New(canary), send.WorkingReaction })
	s.adapter.UseState(s.state)
	return s
}

// fake returns the fake in the form that the conformance test uses.
func (s *conformanceFake) fake() adaptertest.Fake {
	return adaptertest.Fake{
		Adapter: s.adapter, Platform: discord.Platform(), Workspace: "acme", Transport: "gateway",
		Self:    event.Self{UserID: discordtest.BotUser, AppID: discordtest.App},
		Secrets: []string{canary},
		Room:    adaptertest.Place{ID: testapp.Room, Name: "general"}, Direct: adaptertest.Place{ID: testapp.Direct},
		Asker: adaptertest.Person{ID: testapp.Mara, Name: "Mara", Mention: "<@" + testapp.Mara + ">"},
		Other: adaptertest.Person{ID: testapp.Ash, Name: "Ash", Mention: "<@" + testapp.Ash + ">"},
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
	m, e := s.Say(discordtest.Message{Channel: to.Channel, Author: testapp.Mara, Content: text})
	return adaptertest.Delivery{ID: m.ID, Acknowledged: e.Acked}
}

func (s *conformanceFake) open(text string) (string, adapters.Address) {
	m, _ := s.Say(discordtest.Message{Channel: testapp.Room, Author: testapp.Mara, Content: text})
	s.SetChannel(discordtest.Channel{ID: m.ID, Guild: testapp.Garden, Type: discordtest.PublicThread, Parent: testapp.Room})
	return m.ID, adapters.Address{Channel: m.ID}
}

// place returns the channel of a message.
func (s *conformanceFake) place(id string) string {
	for _, channel := range []string{testapp.Room, testapp.Direct} {
		if s.Has(channel, id) {
			return channel
		}
	}
	return testapp.Room
}

func (s *conformanceFake) edit(id, text string) { s.Change(s.place(id), id, text) }

func (s *conformanceFake) remove(id string) { s.Delete(s.place(id), id) }

func (s *conformanceFake) react(id string) { s.AddReaction(s.place(id), id, testapp.Mara, "🎉") }

func (s *conformanceFake) forge(post adapters.Post) {
	s.Say(discordtest.Message{Channel: post.To.Channel, Author: testapp.Ash, Content: post.Text, Nonce: post.Key})
}

func (s *conformanceFake) share(file adaptertest.File) (event.Attachment, bool) {
	f := discordtest.File{Name: "a.bin", MimeType: "application/octet-stream", Content: file.Content}
	switch file.Where {
	case adaptertest.SentOn:
		f.Redirect = s.CDN() + "/attachments/" + testapp.Room + "/moved"
		s.AddFileAt("/attachments/"+testapp.Room+"/moved", f.Content)
	case adaptertest.Unreadable:
		return event.Attachment{}, false
	case adaptertest.Elsewhere:
		f.URL = file.At
	case adaptertest.SentElsewhere:
		f.Redirect = file.At
	}
	f = s.AddFile(testapp.Room, f)
	m, _ := s.Say(discordtest.Message{Channel: testapp.Room, Author: testapp.Mara, Files: []discordtest.File{f}})
	frame, _ := json.Marshal(map[string]any{"op": 0, "t": "MESSAGE_CREATE", "d": map[string]any{
		"id": m.ID, "channel_id": testapp.Room, "author": map[string]any{"id": testapp.Mara}, "attachments": []any{map[string]any{"id": f.ID, "filename": f.Name}}}})
	directory := testapp.NewDirectory(event.Self{}, s.state)
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
