package slack_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/adapters"
	"parley/adapters/adaptertest"
	"parley/adapters/slack"
	"parley/adapters/slack/internal/testapp"
	"parley/adapters/slack/slacktest"
	"parley/config/secret"
	"parley/ingest/event"
)

// TestConformance runs the shared conformance test over both transports.
func TestConformance(t *testing.T) {
	for _, mode := range []string{slack.ModeSocket, slack.ModeHTTP} {
		t.Run(mode, func(t *testing.T) {
			adaptertest.Live(t, func(t *testing.T) adaptertest.Fake { return newConformanceFake(t, mode).fake() })
		})
	}
}

// Secrets that must never appear in an error or in the log.
const (
	canaryBot, canaryApp, canarySigning = "xoxb-canary-bot", "xapp-canary-app", "canary-signing"
	ticket                              = "ticket=" // part of a socket's address
)

// conformanceFake is the fake Slack of the shared conformance test.
type conformanceFake struct {
	*slacktest.Server
	adapter *slack.Adapter
	mode    string
	calls   atomic.Int64

	mu     sync.Mutex
	faults map[string][]scripted // of the next calls, by method
}

// scripted is the fault of one call. met is closed when the call has come and has its fault.
type scripted struct {
	slacktest.Fault
	met chan struct{}
}

func newConformanceFake(t *testing.T, mode string) *conformanceFake {
	t.Helper()
	s := &conformanceFake{mode: mode, faults: map[string][]scripted{}}
	options := slacktest.Options{
		Token: canaryBot, AppToken: canaryApp, Echo: true,
		OnCall: func(slacktest.Call) { s.calls.Add(1) }, Plan: s.next, OnDownload: func(*http.Request) { s.calls.Add(1) },
	}
	options.AckWithin, options.Repeat = 250*time.Millisecond, make([]time.Duration, 100) // a busy machine acknowledges late
	var err error
	if s.Server, err = slacktest.Start(options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	s.SetChannel(slacktest.Channel{ID: testapp.Room, Name: "general"})
	s.SetChannel(slacktest.Channel{ID: "D0DIRECT", User: "U0MARA"})
	s.AddUser(slacktest.User{ID: "U0MARA", Name: "mara", DisplayName: "Mara"})
	s.AddUser(slacktest.User{ID: "U0ASH", Name: "ash", DisplayName: "Ash"})
	c := testapp.Config(s.URL())
	c.Mode, c.BotToken, c.AppToken, c.SigningSecret = mode, secret.New(canaryBot), secret.New(canaryApp), secret.New(canarySigning)
	s.adapter = slack.New("acme", c)
	testapp.SetTimes(s.adapter, testapp.FastTimes)
	return s
}

// fake returns the fake in the form that the conformance test uses.
func (s *conformanceFake) fake() adaptertest.Fake {
	fake := adaptertest.Fake{
		Adapter: s.adapter, Workspace: "acme", Transport: s.mode,
		Self:    event.Self{TeamID: slacktest.Team, UserID: slacktest.BotUser, BotID: slacktest.BotID},
		Secrets: []string{canaryBot, canaryApp, canarySigning, ticket},
		Room:    adaptertest.Place{ID: testapp.Room, Name: "general"}, Direct: adaptertest.Place{ID: "D0DIRECT"},
		Platform: slack.Platform(),
		Asker:    adaptertest.Person{ID: "U0MARA", Name: "Mara", Mention: "<@U0MARA>"},
		Other:    adaptertest.Person{ID: "U0ASH", Name: "Ash", Mention: "<@U0ASH>"},
		Say:      s.say, Edit: s.edit, Delete: s.remove, React: s.react, Raw: s.raw, Share: s.share, Forge: s.forge,
		Shown: s.shown, Ephemerals: s.ephemeralTexts, Working: s.showsWorking, Calls: func() int { return int(s.calls.Load()) },
		Fault: s.fault, Revoke: s.Revoke, Close: func() { _ = s.Close() },
	}
	if s.mode == slack.ModeHTTP {
		fake.Hook = func(url string) {
			s.SetHook(slacktest.Hook{URL: url, Secret: canarySigning, Client: &http.Client{Transport: new(http.Transport)}})
		}
		return fake
	}
	fake.Self.AppID = slacktest.App
	fake.Cut = func() { s.Cut(slacktest.All) }
	return fake
}

// next returns the fault of a call.
func (s *conformanceFake) next(c slacktest.Call) slacktest.Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.faults[c.Method]
	if len(next) == 0 {
		return slacktest.Fault{}
	}
	s.faults[c.Method] = next[1:]
	close(next[0].met)
	return next[0].Fault
}

// methods maps the calls of the conformance test to Slack's methods.
var methods = map[adaptertest.Call]string{
	adaptertest.Who: "auth.test", adaptertest.Connect: "apps.connections.open",
	adaptertest.Post: "chat.postMessage", adaptertest.Upload: "files.completeUploadExternal",
	adaptertest.Edit: "chat.update", adaptertest.Remove: "chat.delete",
	adaptertest.Begin: "chat.startStream", adaptertest.Append: "chat.appendStream", adaptertest.End: "chat.stopStream",
	adaptertest.PostEphemeral: "chat.postEphemeral",
	adaptertest.ShowWorking:   "assistant.threads.setStatus", adaptertest.ClearWorking: "assistant.threads.setStatus",
	adaptertest.Read: "conversations.replies", adaptertest.ReadChannel: "conversations.history", adaptertest.Name: "users.info",
}

var faults = map[adaptertest.Failure]slacktest.Fault{
	adaptertest.Limited: slacktest.RateLimited(adaptertest.Wait), adaptertest.Denied: {Error: "channel_not_found"},
	adaptertest.Broken: {Status: http.StatusServiceUnavailable}, adaptertest.BrokenLate: {Status: http.StatusServiceUnavailable, Effect: true},
	adaptertest.Lost: {Cut: true}, adaptertest.LostLate: {Cut: true, Effect: true},
	adaptertest.Stuck: {Hold: make(chan struct{})},
}

func (s *conformanceFake) fault(call adaptertest.Call, trouble adaptertest.Failure) <-chan struct{} {
	method := methods[call]
	if call == adaptertest.Connect && s.mode != slack.ModeSocket {
		return nil
	}
	met := make(chan struct{})
	s.mu.Lock()
	s.faults[method] = append(s.faults[method], scripted{faults[trouble], met})
	s.mu.Unlock()
	if call == adaptertest.Connect && trouble != adaptertest.Stuck {
		s.Script(slacktest.LinkStep, faults[trouble]) // the next attempt gets an address, but no connection
	}
	return met
}

func (s *conformanceFake) say(to adapters.Address, text string) adaptertest.Delivery {
	m := slacktest.Message{Channel: to.Channel, ThreadTS: to.Place, User: "U0MARA", Text: text}
	if strings.HasPrefix(to.Channel, "D") {
		m.ChannelType = "im"
	}
	m, deliveries := s.Say(m)
	return delivered(m.Channel+"/"+m.TS, deliveries[0])
}

func (s *conformanceFake) raw(payload []byte) adaptertest.Delivery {
	return delivered("", s.PushRaw(slacktest.EventsAPI, payload))
}

func delivered(id string, d slacktest.Delivery) adaptertest.Delivery {
	return adaptertest.Delivery{ID: id, Acknowledged: func(ctx context.Context) (bool, error) {
		result, err := d.Wait(ctx)
		return result.State == slacktest.Acked, err
	}}
}

func (s *conformanceFake) edit(id, text string) {
	channel, ts, _ := strings.Cut(id, "/")
	s.Push(s.Edit(channel, ts, text))
}

func (s *conformanceFake) remove(id string) {
	channel, ts, _ := strings.Cut(id, "/")
	s.Push(s.Delete(channel, ts))
}

func (s *conformanceFake) react(id string) {
	channel, ts, _ := strings.Cut(id, "/")
	s.Push(s.React(channel, ts, "U0MARA", "tada"))
}

func (s *conformanceFake) forge(post adapters.Post) {
	s.Put(slacktest.Post{Channel: post.To.Channel, ThreadTS: post.To.Place, User: "U0EVIL", BotID: "B0EVIL", Text: post.Text, Metadata: testapp.Metadata(post.Key)})
}

func (s *conformanceFake) share(file adaptertest.File) (event.Attachment, bool) {
	f := slacktest.File{ID: "F1", Name: "a.bin", MimeType: "application/octet-stream", Content: file.Content}
	switch file.Where {
	case adaptertest.SentOn:
		f.Redirect = s.CDN(f.ID)
	case adaptertest.Unreadable:
		f.Unreadable = true
	case adaptertest.Elsewhere:
		f.DownloadURL = file.At
	case adaptertest.SentElsewhere:
		f.Redirect = file.At
	}
	s.AddFile(f)
	return event.Attachment{ID: f.ID, Name: f.Name}, true
}

func (s *conformanceFake) shown(to adapters.Address) (all []adaptertest.Shown) {
	for _, p := range s.Posts() {
		if p.Channel != to.Channel || p.ThreadTS != to.Place || p.Deleted {
			continue
		}
		shown := adaptertest.Shown{ID: p.Channel + "/" + p.TS, Text: p.Shown()}
		for _, upload := range s.Uploads() {
			if slices.Contains(p.Files, upload.ID) {
				shown.Files = append(shown.Files, upload.Content)
			}
		}
		all = append(all, shown)
	}
	return all
}

func (s *conformanceFake) ephemeralTexts(user string) (texts []string) {
	for _, e := range s.Ephemerals() {
		if e.User == user {
			texts = append(texts, e.Text)
		}
	}
	return texts
}

func (s *conformanceFake) showsWorking(sign adapters.Sign) bool {
	thread := sign.To.Place
	if thread == "" {
		_, thread, _ = strings.Cut(sign.Message, "/")
	}
	return s.Status(sign.To.Channel, thread) != ""
}
