package daemon_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"parley/adapters/bluebubbles/bluebubblestest"
	"parley/adapters/discord/discordtest"
	"parley/adapters/slack/slacktest"
)

// place is a channel on a fake platform, whose echo agent answers each message.
type place struct {
	*harness
	workspace string
	say       func(text string) // the platform sends its event if there is a connection
	disturb   func()            // events get lost from here on
	restore   func()            // and no more from here on
	// unclear lets the next post take effect when release is closed, and answers it with nothing.
	unclear func(release <-chan struct{})
	slow    func(release <-chan struct{}) // answers the next read of messages when release is closed
	calls   chan string                   // the kind of each call that posts or reads messages
	posts   func() []string
}

// lead is the time by which the clock leads or lags at first.
const lead = 12 * time.Hour

// notes returns a function that notes the kinds of calls, by their routes.
func (p *place) notes(kinds map[string]string) func(route string) {
	p.calls = make(chan string, 1000)
	return func(route string) {
		if kind := kinds[route]; kind != "" {
			select {
			case p.calls <- kind:
			default: // the test needs only the first ones
			}
		}
	}
}

// await waits for a call of a kind.
func (p *place) await(kind string) {
	p.t.Helper()
	for {
		select {
		case got := <-p.calls:
			if got == kind {
				return
			}
		case <-p.ctx.Done():
			p.t.Fatalf("there is no %s\n%s\n%s", kind, p.state(), p.log)
		}
	}
}

// leading opens a daemon on each platform, whose clock leads by a time.
var leading = map[string]func(t *testing.T, lead time.Duration) *place{
	"slack": func(t *testing.T, lead time.Duration) *place {
		p := &place{workspace: "acme"}
		note := p.notes(map[string]string{"chat.postMessage": "post", "conversations.history": "read", "conversations.replies": "read"})
		p.harness = open(t, plan{
			clock: &clock{ahead: lead}, steps: true,
			fake:  slacktest.Options{OnCall: func(c slacktest.Call) { note(c.Method) }},
			files: map[string]string{"workspaces/acme.yaml": strings.Replace(socketMode, "sockets: %d", "timeout: 5s, preview: off, working: off", 1)},
		})
		p.slack.AddChannel(room, "garden")
		cut := false
		p.say = func(text string) {
			p.last = p.last.Add(time.Millisecond)
			m := slacktest.Message{Channel: room, User: mara, Text: "<@U0BOT> " + text, TS: slacktest.Timestamp(p.last)}
			if cut {
				p.slack.Put(slacktest.Post{Channel: room, User: mara, Text: m.Text, TS: m.TS})
			} else {
				p.slack.Say(m)
			}
		}
		p.disturb = func() { cut = true; p.slack.Cut(slacktest.All) }
		p.restore = func() {
			cut = false
			if err := p.slack.AwaitFresh(p.ctx, 1); err != nil {
				t.Fatalf("%v\n%s", err, p.log)
			}
		}
		p.unclear = func(release <-chan struct{}) {
			p.slack.Script("chat.postMessage", slacktest.Fault{Hold: release, Effect: true, Cut: true})
		}
		p.slow = func(release <-chan struct{}) {
			p.slack.Script("conversations.history", slacktest.Fault{Hold: release, Effect: true})
		}
		p.harness.slack.AddUser(slacktest.User{ID: mara, DisplayName: "Mara"})
		p.posts = func() (texts []string) {
			for _, post := range p.slack.Posts() {
				texts = append(texts, strings.TrimPrefix(post.Text, "<@U0BOT> "))
			}
			return texts
		}
		return p
	},
	"discord": func(t *testing.T, lead time.Duration) *place {
		const guild, shed, olivia = "700000000000000001", "700000000000000002", "700000000000000005"
		p := &place{workspace: "guild"}
		note := p.notes(map[string]string{discordtest.Post: "post", discordtest.Read: "read"})
		fake, err := discordtest.Start(discordtest.Options{Heartbeat: time.Second, OnCall: func(c discordtest.Call) { note(c.Route) }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = fake.Close() })
		fake.AddGuild(discordtest.Guild{ID: guild})
		fake.AddUser(discordtest.User{ID: olivia, Username: "Olivia"})
		fake.SetChannel(discordtest.Channel{ID: shed, Guild: guild})
		p.harness = open(t, plan{clock: &clock{ahead: lead}, steps: true, files: map[string]string{"workspaces/guild.yaml": `
id: guild
platform: discord
agent: echo
discord: {token: ` + discordtest.Token + `, api_url: "` + fake.URL() + `", post_rate: 0, timeout: 5s, preview: off, working: off, commands: false}
turns: {coalesce: 0s}
`}})
		const mention = "<@" + discordtest.BotUser + "> "
		cut := false
		p.say = func(text string) {
			m := discordtest.Message{Channel: shed, Author: olivia, Content: mention + text}
			if cut {
				fake.Put(m)
			} else {
				fake.Say(m)
			}
		}
		p.disturb = func() { cut = true; fake.Drop(discordtest.Forget) }
		p.restore = func() {
			cut = false
			if err := fake.AwaitShards(p.ctx, 1); err != nil {
				t.Fatalf("%v\n%s", err, p.log)
			}
		}
		p.unclear = func(release <-chan struct{}) {
			fake.Script(discordtest.Post, discordtest.Fault{Hold: release, Effect: true, Cut: true})
		}
		p.slow = func(release <-chan struct{}) { fake.Script(discordtest.Read, discordtest.Fault{Hold: release}) }
		p.posts = func() (texts []string) {
			for _, post := range fake.Posts(shed) {
				texts = append(texts, strings.TrimPrefix(post.Content, mention))
			}
			return texts
		}
		return p
	},
	"bluebubbles": func(t *testing.T, lead time.Duration) *place {
		p := &place{workspace: "home"}
		note := p.notes(map[string]string{"POST message/text": "post", "POST message/query": "read"})
		mac, err := bluebubblestest.Start(bluebubblestest.Options{Password: macPassword, OnCall: func(c bluebubblestest.Call) { note(c.Route) }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = mac.Close() })
		p.harness = open(t, plan{clock: &clock{ahead: lead}, steps: true, files: map[string]string{"workspaces/home.yaml": `
id: home
platform: bluebubbles
agent: echo
bluebubbles: {url: "` + mac.URL() + `", password: "` + macPassword + `", webhook_secret: ` + hookCanary + `, post_rate: 0, timeout: 5s, poll: 200ms}
turns: {coalesce: 0s}
`}})
		cut := false
		p.say = func(text string) {
			m := bluebubblestest.Message{Chat: noraChat, From: nora, Text: text}
			if cut {
				mac.Put(m)
			} else {
				mac.Say(m)
			}
		}
		p.disturb = func() { cut = true; mac.SetAway(true) }
		p.restore = func() { cut = false; mac.SetAway(false) }
		p.unclear = func(release <-chan struct{}) {
			mac.Script("POST message/text", bluebubblestest.Fault{Hold: release, Effect: true, Cut: true})
		}
		p.slow = func(release <-chan struct{}) {
			mac.Script("POST message/query", bluebubblestest.Fault{Hold: release})
		}
		p.posts = func() (texts []string) {
			for _, m := range mac.Sent() {
				texts = append(texts, m.Text)
			}
			return texts
		}
		return p
	},
}

// answered waits until the place has these posts and no others.
func (p *place) answered(want ...string) {
	p.t.Helper()
	for len(p.posts()) < len(want) || p.metric(`parley_deliveries_total{state="sent",workspace="`+p.workspace+`"}`) == 0 {
		if !p.poll() {
			p.t.Fatalf("the posts are %q, want %q\n%s\n%s", p.posts(), want, p.state(), p.log)
		}
	}
	if got := p.posts(); !slices.Equal(got, want) {
		p.t.Fatalf("the posts are %q, want %q\n%s", got, want, p.log)
	}
}

// again starts the daemon again, with messages that come meanwhile.
func (p *place) again(text string) {
	p.t.Helper()
	if err := p.stop(); err != nil {
		p.t.Fatal(err)
	}
	p.disturb()
	p.last = time.Now()
	p.say(text)
	if p.workspace == "home" {
		p.restore() // its server is there before the daemon
	}
	if err := p.start(p.dir + "/parley.yaml"); err != nil {
		p.t.Fatal(err)
	}
	if p.workspace != "home" {
		p.restore()
	}
	p.awaitState(p.workspace, "up")
}

// TestAClockThatLedIsSetRight: the daemon's clock leads or lags by half a day and is set right, while events get
// lost, while they are read, or while the outcome of a post is open. Every message is answered once, also one
// that comes before the next start.
func TestAClockThatLedIsSetRight(t *testing.T) {
	t.Parallel()
	for name, at := range leading {
		for way, lead := range map[string]time.Duration{"led": lead, "lagged": -lead} {
			t.Run(name+" "+way+" during a gap", func(t *testing.T) {
				t.Parallel()
				p := at(t, lead)
				p.awaitState(p.workspace, "up")
				p.say("one")
				p.answered("one")
				p.disturb()
				p.say("two")
				p.clock.advance(-lead)
				p.restore()
				p.answered("one", "two")
				p.say("three")
				p.answered("one", "two", "three")
				p.again("four")
				p.answered("one", "two", "three", "four")
			})
			t.Run(name+" "+way+" during a read", func(t *testing.T) {
				t.Parallel()
				p := at(t, lead)
				p.awaitState(p.workspace, "up")
				p.say("one")
				p.answered("one")
				p.disturb()
				p.say("two")
				release := make(chan struct{})
				p.slow(release)
				for len(p.calls) > 0 {
					<-p.calls
				}
				p.restore()
				p.await("read")
				p.clock.advance(-lead)
				close(release)
				p.answered("one", "two")
				p.again("three")
				p.answered("one", "two", "three")
			})
			t.Run(name+" "+way+" during a post", func(t *testing.T) {
				t.Parallel()
				p := at(t, lead)
				p.awaitState(p.workspace, "up")
				release := make(chan struct{})
				p.unclear(release)
				p.say("one")
				p.await("post")
				p.clock.advance(-lead)
				close(release)
				p.answered("one")
				p.again("two")
				p.answered("one", "two")
			})
		}
	}
}
