package daemon_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"parley/adapters/discord/discordtest"
	"parley/adapters/slack/slacktest"
)

// rotate replaces a secret in the files of a plan, and reloads them.
func (h *harness) rotate(p plan, old, rotated string) {
	h.t.Helper()
	p.dir = h.dir
	p.write(h.t, strings.NewReplacer(old, rotated, "AGENT", h.model.URL, "SLACK", h.slack.URL()))
	h.reload()
}

// statuses compares the statuses of two answers: to the old secret, and to the new one.
func statuses(t *testing.T, old, rotated answer, want int) {
	t.Helper()
	if old.status != http.StatusUnauthorized || rotated.status != want {
		t.Errorf("the old secret gets %d, the new one %d", old.status, rotated.status)
	}
}

// TestSigningSecretRotates delivers messages without a pause while the secret changes, and one
// whose run lasts over the change. All that were acknowledged are recorded and answered.
func TestSigningSecretRotates(t *testing.T) {
	t.Parallel()
	const rotated = "canary-signing-77aa01"
	h := open(t, plan{})
	h.mention("before")
	before := h.nextRequest()
	type result struct{ accepted, refused int }
	results := make(chan result)
	go func() {
		var r result
		for n := 0; r.refused == 0 && h.ctx.Err() == nil; n++ {
			m := slacktest.Message{Channel: "C0SHED", User: mara, Text: "on and on", TS: slacktest.Timestamp(h.clock.now().Add(time.Duration(n) * time.Microsecond))}
			request, err := slacktest.NewRequest(h.ctx, h.url+"/hooks/slack/acme", signingSecret, time.Now(), m.Event())
			if err != nil {
				break
			}
			response, err := new(http.Client).Do(request)
			if err != nil {
				break
			}
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				r.accepted++
			} else {
				r.refused++
			}
		}
		results <- r
	}()
	h.awaitSome(envelopesMetric("message", "stored", "no-mention"))
	h.rotate(plan{}, signingSecret, rotated)
	r := <-results
	h.awaitMetric(envelopesMetric("message", "stored", "no-mention"), float64(r.accepted))

	signed := func(secret string) answer {
		return h.send(slacktest.NewRequest(h.ctx, h.url+"/hooks/slack/acme", secret, time.Now(), h.newMessage("<@U0BOT> after").Mention()))
	}
	statuses(t, signed(signingSecret), signed(rotated), http.StatusOK)
	h.answer(before, replyWith("Before."))
	h.answerNext(replyWith("After."))
	h.posts(2)
}

// TestWebTokenRotates changes a token while a run lasts.
func TestWebTokenRotates(t *testing.T) {
	t.Parallel()
	const rotated = "canary-own-0d4be9-71f5a2c8"
	h := open(t, plan{})
	h.postWeb("before")
	before := h.nextRequest()
	h.rotate(plan{}, ownToken, rotated)
	post := func(token string) answer {
		return h.post(token, `{"thread_id":"`+thread+`","content":"after"}`)
	}
	statuses(t, post(ownToken), post(rotated), http.StatusAccepted)
	h.answer(before, replyWith("Before."))
	h.answerNext(replyWith("After."))
	for h.poll() {
		list := h.web(http.MethodGet, "ours/threads/"+thread+"/messages", rotated, "").body
		if strings.Contains(list, "Before.") && strings.Contains(list, "After.") {
			return
		}
	}
	t.Errorf("a reply is missing\n%s", h.log)
}

// TestATicketEndsWithItsToken changes a token after it has got a ticket.
func TestATicketEndsWithItsToken(t *testing.T) {
	t.Parallel()
	const rotated = "canary-own-55c1d7-8e02aa41"
	h := open(t, plan{}).echoes()
	h.postWeb("hi")
	path := "/api/v1/chat/threads/" + thread + "/messages"
	ticket := func(token string) string {
		return decode[struct{ Ticket string }](t, h.request(http.MethodPost, "/api/v1/tickets", token, "application/json", `{"path":"`+path+`"}`).body).Ticket
	}
	old := ticket(ownToken)
	h.rotate(plan{}, ownToken, rotated)
	statuses(t, h.get(path+"?ticket="+old), h.get(path+"?ticket="+ticket(rotated)), http.StatusOK) // she has written in the thread
}

// TestMetricsTokenRotates changes the token of the metrics.
func TestMetricsTokenRotates(t *testing.T) {
	t.Parallel()
	const rotated = "canary-metrics-f0836b-22ce71"
	h := open(t, plan{metrics: metricsToken})
	if got := h.forwarded("/metrics", metricsToken); got.status != http.StatusOK {
		t.Errorf("before: %d", got.status)
	}
	h.rotate(plan{metrics: metricsToken}, metricsToken, rotated)
	statuses(t, h.forwarded("/metrics", metricsToken), h.forwarded("/metrics", rotated), http.StatusOK)
}

// TestAPIKeyRotates changes the key of the agent while a run lasts: the run goes on.
func TestAPIKeyRotates(t *testing.T) {
	t.Parallel()
	const rotated = "canary-key-b7140e"
	h := open(t, plan{})
	h.mention("before")
	before := h.nextRequest()
	h.model.key.Store(new("Bearer " + rotated)) // the old one is refused from now on
	h.rotate(plan{}, apiKey, rotated)
	h.mention("after")
	after := h.nextRequest()
	h.answer(before, replyWith("Before."))
	h.answer(after, replyWith("After."))
	h.posts(2)
}

// TestBotTokenRotates gives a workspace whose token Slack has revoked its new token. The
// message that arrived before is answered.
func TestBotTokenRotates(t *testing.T) {
	t.Parallel()
	const rotated = "xoxb-slacktest-rotated"
	h := open(t, plan{fake: slacktest.Options{Token: rotated}})
	h.awaitState("acme", "refused")
	h.mention("hello")
	h.rotate(plan{}, slacktest.Token, rotated)
	h.awaitState("acme", "up")
	h.answerNext(replyWith("Hello."))
	h.posts(1)
}

// TestAnotherAppOfTheTeam gives a workspace the token of another app in the same team. The first
// app's id is known from a payload, and one more of its payloads arrives late.
func TestAnotherAppOfTheTeam(t *testing.T) {
	t.Parallel()
	const another, user = "xoxb-slacktest-another", "U0ANOTHER"
	h := open(t, plan{})
	h.awaitState("acme", "up")
	h.mention("before")
	h.answerNext(replyWith("Before."))
	h.posts(1)
	fake, err := slacktest.Start(slacktest.Options{Token: another, BotUser: user})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fake.Close() })
	p := plan{dir: h.dir}
	p.write(t, strings.NewReplacer(slacktest.Token, another, "AGENT", h.model.URL, "SLACK", fake.URL()))
	h.reload()
	h.awaitState("acme", "up")
	h.accept(h.newMessage("still from the first app").Event())
	h.awaitMetric(envelopesMetric("message", "stored", "no-mention"), 1)
	m := h.newMessage("<@" + user + "> after")
	m.App = "A0ANOTHER"
	h.accept(bytes.ReplaceAll(m.Mention(), []byte(slacktest.BotUser), []byte(user)))
	h.answerNext(replyWith("After."))
}

// TestEventsWaitForAnotherApp gives a workspace the token of another app, whose first event arrives
// before Slack has told who the app is. The first app's id is known, so the event would be another
// app's by the stored identity.
func TestEventsWaitForAnotherApp(t *testing.T) {
	t.Parallel()
	const another, user = "xoxb-slacktest-another", "U0ANOTHER"
	h := open(t, plan{})
	h.awaitState("acme", "up")
	h.mention("before")
	h.answerNext(replyWith("Before."))
	h.posts(1)
	fake, err := slacktest.Start(slacktest.Options{Token: another, BotUser: user})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fake.Close() })
	hold := make(chan struct{})
	fake.Script("auth.test", slacktest.Fault{Hold: hold})
	p := plan{dir: h.dir}
	p.write(t, strings.NewReplacer(slacktest.Token, another, "AGENT", h.model.URL, "SLACK", fake.URL()))
	h.reload()
	m := h.newMessage("<@" + user + "> after")
	m.App = "A0ANOTHER"
	h.accept(bytes.ReplaceAll(m.Mention(), []byte(slacktest.BotUser), []byte(user)))
	close(hold)
	h.answerNext(replyWith("After."))
}

// TestAReloadTriesARefusedWorkspaceAgain resolves the refusal at Slack alone: the files do not change.
func TestAReloadTriesARefusedWorkspaceAgain(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.awaitState("acme", "up")
	revoked := slacktest.Fault{Error: "token_revoked"}
	h.slack.Script("chat.postMessage", revoked)
	h.slack.Script("auth.test", revoked)
	h.mention("hello")
	h.answerNext(replyWith("Hello."))
	h.awaitState("acme", "refused")
	h.reload()
	h.awaitState("acme", "up")
}

// TestAppTokenRotates gives a workspace with sockets its new token.
func TestAppTokenRotates(t *testing.T) {
	t.Parallel()
	const rotated = "xapp-slacktest-rotated"
	p := plan{fake: slacktest.Options{AppToken: rotated}, files: map[string]string{"workspaces/acme.yaml": fmt.Sprintf(socketMode, 1)}}
	h := open(t, p)
	h.awaitState("acme", "refused")
	h.rotate(p, slacktest.AppToken, rotated)
	h.sockets(1, 1)
	h.slack.Say(slacktest.Message{Channel: room, User: mara, Text: "<@U0BOT> when do we water?"})
	h.posts(1)
}

// TestDiscordTokenRotates gives a workspace whose token Discord has revoked its new token. Discord
// recommends two shards.
func TestDiscordTokenRotates(t *testing.T) {
	t.Parallel()
	const rotated = "discordtest-rotated"
	fake, err := discordtest.Start(discordtest.Options{Token: rotated, Shards: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fake.Close() })
	p := plan{files: map[string]string{"workspaces/guild.yaml": "id: guild\nplatform: discord\nagent: echo\ndiscord: {token: " + discordtest.Token + ", api_url: \"" + fake.URL() + "\"}\n"}}
	h := open(t, p)
	h.awaitState("guild", "refused")
	h.rotate(p, discordtest.Token, rotated)
	h.awaitState("guild", "up")
	if err := fake.AwaitShards(h.ctx, 2); err != nil {
		t.Errorf("%v\n%s", err, h.log)
	}
}

// TestWebhookSecretRotates changes the secret of an agent that answers later.
func TestWebhookSecretRotates(t *testing.T) {
	t.Parallel()
	const rotated, hello = "webhook-secret-of-the-test-2", `{"content":"Hello."}`
	h := openLater(t)
	run := h.take()
	h.rotate(h.plan, laterSecret, rotated)
	statuses(t, h.reply(run, laterSecret, hello), h.reply(run, rotated, hello), http.StatusAccepted)
	h.awaitMetric(`parley_runs_total{agent="helper",outcome="answered"}`, 1)
}

// awaitState waits until a workspace has a state.
func (h *harness) awaitState(workspace, state string) {
	h.t.Helper()
	for !strings.Contains(h.get("/readyz").body, `"`+workspace+`":{"state":"`+state+`"`) {
		if !h.poll() {
			h.t.Fatalf("%s is not %s\n%s", workspace, state, h.log)
		}
	}
}

// awaitSome waits until a figure is not 0.
func (h *harness) awaitSome(name string) {
	h.t.Helper()
	for h.metric(name) == 0 {
		if !h.poll() {
			h.t.Fatalf("%s is 0\n%s", name, h.log)
		}
	}
}
