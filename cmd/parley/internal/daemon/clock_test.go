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
	calls   chan struct{} // a value for each call that posts
	posts   func() []string
}

// lead is the time by which the clock leads at first.
const lead = 12 * time.Hour

// places open a daemon each, whose clock leads.
var leading = map[string]func(t *testing.T) *place{
	"slack": func(t *testing.T) *place {
		p := &place{workspace: "acme", calls: make(chan struct{}, 100)}
		p.harness = open(t, plan{
			clock: &clock{ahead: lead}, steps: true,
			fake: slacktest.Options{OnCall: func(c slacktest.Call) {
				if c.Method == "chat.postMessage" {
					p.calls <- struct{}{}
				}
			}},
			files: map[string]string{"workspaces/acme.yaml": strings.Replace(socketMode, "sockets: %d", "timeout: 1s, preview: off, working: off", 1)},
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
		p.harness.slack.AddUser(slacktest.User{ID: mara, DisplayName: "Mara"})
		p.posts = func() (texts []string) {
			for _, post := range p.slack.Posts() {
				texts = append(texts, strings.TrimPrefix(post.Text, "<@U0BOT> "))
			}
			return texts
		}
		return p
	},
	"discord": func(t *testing.T) *place {
		const guild, shed, olivia = "700000000000000001", "700000000000000002", "700000000000000005"
		p := &place{workspace: "guild", calls: make(chan struct{}, 100)}
		fake, err := discordtest.Start(discordtest.Options{Heartbeat: 100 * time.Millisecond, OnCall: func(c discordtest.Call) {
			if c.Route == discordtest.Post {
				p.calls <- struct{}{}
			}
		}})
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
discord: {token: ` + discordtest.Token + `, api_url: "` + fake.URL() + `", post_rate: 0, timeout: 1s, preview: off, working: off, commands: false}
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
		p.posts = func() (texts []string) {
			for _, post := range fake.Posts(shed) {
				texts = append(texts, strings.TrimPrefix(post.Content, mention))
			}
			return texts
		}
		return p
	},
	"bluebubbles": func(t *testing.T) *place {
		p := &place{workspace: "home", calls: make(chan struct{}, 100)}
		mac, err := bluebubblestest.Start(bluebubblestest.Options{Password: macPassword, OnCall: func(c bluebubblestest.Call) {
			if c.Route == "POST message/text" {
				p.calls <- struct{}{}
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = mac.Close() })
		p.harness = open(t, plan{clock: &clock{ahead: lead}, steps: true, files: map[string]string{"workspaces/home.yaml": `
id: home
platform: bluebubbles
agent: echo
bluebubbles: {url: "` + mac.URL() + `", password: "` + macPassword + `", webhook_secret: ` + hookCanary + `, post_rate: 0, timeout: 1s, poll: 200ms}
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

// TestAClockThatLedIsSetRight: the daemon's clock leads by half a day and steps back, while events get lost or
// while the outcome of a post is open. Every message is answered once, also one that comes before the next
// start.
func TestAClockThatLedIsSetRight(t *testing.T) {
	t.Parallel()
	for name, at := range leading {
		t.Run(name+" during a gap", func(t *testing.T) {
			t.Parallel()
			p := at(t)
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
		t.Run(name+" during a post", func(t *testing.T) {
			t.Parallel()
			p := at(t)
			p.awaitState(p.workspace, "up")
			release := make(chan struct{})
			p.unclear(release)
			p.say("one")
			<-p.calls
			p.clock.advance(-lead)
			close(release)
			p.answered("one")
			p.again("two")
			p.answered("one", "two")
		})
	}
}
