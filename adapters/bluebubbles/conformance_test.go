package bluebubbles_test

import (
	"context"
	"net/http"
	"sync"
	"testing"

	"parley/adapters"
	"parley/adapters/adaptertest"
	"parley/adapters/bluebubbles"
	"parley/adapters/bluebubbles/bluebubblestest"
	"parley/adapters/bluebubbles/internal/testapp"
	"parley/ingest/event"
)

// TestConformance runs the shared conformance test.
func TestConformance(t *testing.T) {
	adaptertest.Live(t, func(t *testing.T) adaptertest.Fake {
		return newLive(t, bluebubblestest.Options{PrivateAPI: true}).fake()
	})
}

// live is the fake server of the shared conformance test.
type live struct {
	*testapp.Server

	mu     sync.Mutex
	faults map[string][]chan struct{} // by route, one channel for each scripted fault; closed when the call has come
}

func newLive(t *testing.T, options bluebubblestest.Options) *live {
	t.Helper()
	s := &live{faults: map[string][]chan struct{}{}}
	options.OnCall = s.called
	s.Server = testapp.Start(t, options)
	return s
}

// fake returns the server in the form that the conformance test uses.
func (s *live) fake() adaptertest.Fake {
	return adaptertest.Fake{
		Adapter: s.Adapter, Platform: bluebubbles.Platform(), Workspace: "home", Transport: "webhook",
		Self:    event.Self{Address: bluebubblestest.Address},
		Secrets: []string{testapp.Canary, testapp.CanaryQuery, testapp.CanaryPath, testapp.CanaryWebhook},
		Room:    adaptertest.Place{ID: "chat640021977", Name: "Allotment"}, Direct: adaptertest.Place{ID: testapp.Nora},
		Asker: adaptertest.Person{ID: testapp.Nora, Name: "Nora Lindqvist"}, Other: adaptertest.Person{ID: testapp.Tomas, Name: "Tomás Reyes"},
		FileAlone: true,
		Hook: func(url string) {
			s.Register(url+"/hooks/bluebubbles/home/"+testapp.CanaryWebhook, "new-message", "updated-message")
		},
		Say: s.say, Share: s.share, Shown: s.shown, Fault: s.fault,
		Edit:   func(id, text string) { s.Edit(id, text) },
		Delete: func(id string) { s.Unsend(id) },
		React:  func(id string) { s.React(id, testapp.Nora, "love") },
		Raw:    func(payload []byte) adaptertest.Delivery { return delivered("", s.PushRaw("new-message", payload)) },
		Forge: func(post adapters.Post) {
			s.Put(bluebubblestest.Message{Chat: guids[post.To.Channel], From: testapp.Tomas, Text: post.Text})
		},
		Working: func(sign adapters.Sign) bool { return s.IsTyping(guids[sign.To.Channel]) },
		Calls:   func() int { return int(s.Calls.Load()) },
		Revoke:  func() { s.Revoked.Store(true) },
		Close:   func() { _ = s.Close() },
	}
}

// guids are the chats by their names.
var guids = map[string]string{"chat640021977": testapp.Group, testapp.Nora: testapp.Direct}

func (s *live) called(c bluebubblestest.Call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if waiting := s.faults[c.Route]; len(waiting) > 0 {
		close(waiting[0])
		s.faults[c.Route] = waiting[1:]
	}
}

// routes maps the calls of the conformance test to the server's.
var routes = map[adaptertest.Call]string{
	adaptertest.Who: "GET server/info", adaptertest.Post: "POST message/text", adaptertest.Upload: "POST message/attachment",
	adaptertest.ShowWorking: "POST chat/typing", adaptertest.ClearWorking: "DELETE chat/typing",
	adaptertest.Read: "POST message/query", adaptertest.Name: "POST contact/query",
}

var faults = map[adaptertest.Failure]bluebubblestest.Fault{
	adaptertest.Limited: bluebubblestest.RateLimited(adaptertest.Wait), adaptertest.Denied: {Status: http.StatusBadRequest},
	adaptertest.Broken: {Status: http.StatusInternalServerError}, adaptertest.BrokenLate: {Status: http.StatusInternalServerError, Effect: true},
	adaptertest.Lost: {Cut: true}, adaptertest.LostLate: {Cut: true, Effect: true},
	adaptertest.Stuck: {Hold: make(chan struct{})},
}

func (s *live) fault(call adaptertest.Call, failure adaptertest.Failure) <-chan struct{} {
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

func (s *live) say(to adapters.Address, text string) adaptertest.Delivery {
	m, _ := s.Say(bluebubblestest.Message{Chat: guids[to.Channel], From: testapp.Nora, Text: text})
	return adaptertest.Delivery{ID: m.GUID}
}

func delivered(id string, d bluebubblestest.Delivery) adaptertest.Delivery {
	return adaptertest.Delivery{ID: id, Acknowledged: func(ctx context.Context) (bool, error) {
		status, err := d.Wait(ctx)
		return status == http.StatusOK, err
	}}
}

func (s *live) share(file adaptertest.File) (event.Attachment, bool) {
	s.AddFile("at_0_shared", file.Content)
	return event.Attachment{ID: "at_0_shared", Name: "a.bin"}, file.Where == adaptertest.Here
}

func (s *live) shown(to adapters.Address) (all []adaptertest.Shown) {
	for _, m := range s.Sent() {
		if m.Chat != guids[to.Channel] {
			continue
		}
		shown := adaptertest.Shown{ID: m.GUID, Text: m.Text}
		for _, a := range m.Attachments {
			shown.Files = append(shown.Files, s.File(a.GUID))
		}
		all = append(all, shown)
	}
	return all
}
