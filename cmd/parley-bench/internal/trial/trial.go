// Package trial sets up one trial of the daemons or of the floor: fakes of Slack and of the agents'
// servers, the programs, the load of messages, and the verdict at the end.
package trial

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"parley/adapters/slack/slacktest"
	"parley/cmd/parley-bench/floor"
	"parley/cmd/parley-bench/internal/ledger"
	"parley/cmd/parley-bench/internal/rig"
	"parley/ingest/wake"
)

// Trial is one set-up under test: the fakes of the platform and of the model, the programs,
// and the ledger that compares the replies with the messages.
type Trial struct {
	*rig.Bench
	Setup  Setup
	API    *slacktest.Server // nil on another platform
	Model  *Model            // nil if the echo agent answers
	Ledger *ledger.Ledger
	Nodes  *rig.Nodes
	// Posts returns the programs' posts on the platform, in the order in which they took effect.
	Posts  func() []slacktest.Post
	Faults []string // those that the scenario found by itself
	// Transport carries Slack's events to the hook; nil for Socket Mode.
	Transport *rig.Transport
}

// fastRetries are waits between Slack's attempts that are shorter than Slack's own.
// They go on for a minute.
func fastRetries() []time.Duration {
	return slices.Repeat([]time.Duration{20 * time.Millisecond}, 3000)
}

// New starts the fakes and prepares the programs, but does not start them. The
// bench's close ends everything. name is the prefix of the programs' directories.
func New(ctx context.Context, b *rig.Bench, name string, s Setup) (t *Trial, err error) {
	t = &Trial{Bench: b, Setup: s, Ledger: ledger.New()}
	t.Ledger.Unordered = s.Floor || s.Bolt != ""
	if !s.SlackRetries {
		s.Slack.Repeat = fastRetries()
	}
	if t.API, err = startSlack(b, s.Slack); err != nil {
		return nil, err
	}
	t.Posts = t.API.Posts
	if s.Model != nil {
		t.Model = StartModel(b, t.Ledger, *s.Model)
	}
	newChild := t.newDaemon
	switch {
	case s.Floor:
		newChild = t.newFloor
	case s.Bolt != "":
		newChild = func(name string, _ *rig.Database) (*rig.Child, error) {
			model := ""
			if t.Model != nil {
				model = t.Model.URL(name)
			}
			return b.NewBolt(name, s.Bolt, t.API.ClientURL(name), model)
		}
	}
	if t.Nodes, err = b.NewNodes(ctx, name, newChild); err != nil {
		return nil, err
	}
	if s.Sockets == 0 {
		t.Transport = rig.NewTransport(t.Nodes.All)
		t.API.SetHook(slacktest.Hook{URL: "http://daemon" + rig.HookPath, Secret: rig.SigningSecret, Client: &http.Client{Transport: t.Transport}})
	}
	if s.Floor && t.Nodes.Database != nil {
		if _, err := t.Nodes.Store.ExecContext(ctx, floor.Tables); err != nil {
			return nil, fmt.Errorf("make the floor's tables: %w", err)
		}
	}
	return t, nil
}

// startSlack starts the fake of Slack's API with all users in its directory.
func startSlack(b *rig.Bench, options slacktest.Options) (*slacktest.Server, error) {
	api, err := slacktest.Start(options)
	if err != nil {
		return nil, err
	}
	b.OnClose(api.Close)
	for n := range ledger.Users {
		api.AddUser(slacktest.User{ID: ledger.User(n), Name: fmt.Sprintf("human%d", n), DisplayName: fmt.Sprintf("Human %d", n)})
	}
	return api, nil
}

// Start prepares a trial and starts its programs. It returns when they are ready.
func Start(ctx context.Context, b *rig.Bench, name string, s Setup) (*Trial, error) {
	t, err := New(ctx, b, name, s)
	if err != nil {
		return nil, err
	}
	return t, t.Start(ctx)
}

// Start starts the programs. It returns when they are ready and their sockets are open.
func (t *Trial) Start(ctx context.Context) error {
	if err := t.Nodes.Start(ctx); err != nil || t.Setup.Sockets == 0 {
		return err
	}
	if err := t.API.AwaitFresh(ctx, t.Setup.Sockets); err != nil {
		return fmt.Errorf("%w\n%s", err, t.Nodes.LogTail())
	}
	return nil
}

// AwaitPosts waits until Slack has n posts. Its error contains the programs' logs.
func (t *Trial) AwaitPosts(ctx context.Context, n int, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if _, err := t.API.Await(ctx, n); err != nil {
		return fmt.Errorf("%w\n%s", err, t.Nodes.LogTail())
	}
	return nil
}

// Settle waits until the daemons have no unfinished work and Slack has n posts, and describes
// what is left. gaps says whether gaps count as unfinished work.
func (t *Trial) Settle(ctx context.Context, n int, gaps bool, within time.Duration) (left string) {
	return t.Nodes.Settle(ctx, within, func(work *rig.Backlog) string {
		if !gaps {
			work.Gaps = 0
		}
		return Fewer(len(t.Posts()), n, "posts")
	})
}

// Fewer describes too small a number of things; empty for enough.
func Fewer(there, due int, things string) string {
	if there >= due {
		return ""
	}
	return fmt.Sprintf("%d of %d %s", there, due, things)
}

// Finish stops the programs, prints the ledger's verdict, and returns ErrViolated if
// the verdict has a violation or the scenario found faults, the trial's or more. Empty
// faults do not count.
func (t *Trial) Finish(faults ...string) error {
	if err := t.Nodes.Stop(); err != nil {
		return err
	}
	verdict := t.Ledger.Check(t.Posts())
	t.Printf("%v", verdict)
	if len(verdict.Details) > 0 {
		faults = append(faults, "the ledger has violations")
	}
	return Violations(append(faults, t.Faults...))
}

// secondReplyWait is the time in which a second reply would come after all work is done.
const secondReplyWait = 3 * time.Second

// Latest is the longest delay between a request and its effect. It is longer than the
// daemon's timeout for a call, 10 s, and shorter than the 15 s after which the daemon
// looks for the post.
const Latest = 12 * time.Second

// FinishLate is finish after a wait for second replies. It also tells how late missed messages
// were read.
func (t *Trial) FinishLate(ctx context.Context, faults ...string) error {
	if !wake.After(ctx, secondReplyWait) {
		return ctx.Err()
	}
	if err := t.ReportMissed(ctx); err != nil {
		return err
	}
	return t.Finish(faults...)
}

// Violations returns ErrViolated with the faults that are not empty; nil if there is none.
func Violations(faults []string) error {
	faults = slices.DeleteFunc(faults, func(fault string) bool { return fault == "" })
	if len(faults) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", rig.ErrViolated, strings.Join(faults, "; "))
}

// Setup is the part of a trial that differs between scenarios.
type Setup struct {
	Slack slacktest.Options
	Model *Behaviour // nil for the echo agent
	Floor bool       // the floor runs instead of the daemon
	Bolt  string     // an app of Bolt runs instead of the daemon; the folder in which npm has installed it
	// SlackRetries says that Slack sends an event again after its own waits: at once, after
	// one minute and after five minutes.
	SlackRetries bool
	// Timeout is slack.timeout in the configuration; empty for the daemon's default.
	Timeout string
	// Streams says that Slack shows the model's answers while they grow, that a reaction
	// shows the run, and that a newer message interrupts the run.
	Streams bool
	// Relay says that Slack shows the model's answers while they grow, once a second, and that nothing else shows the run.
	Relay bool
	// WholeThread gives the model the default window of a thread, not a short one.
	WholeThread bool
	// Runs is the number of concurrent runs of the model; 0 for 128.
	Runs int
	// Sockets is the daemon's number of Socket Mode connections; 0 for the hook.
	Sockets int
	// Coalesce is turns.coalesce. With more than 0, only one message of a thread may come within it, since the ledger compares
	// each reply with one message.
	Coalesce time.Duration
}

// newDaemon prepares a daemon with its configuration.
func (t *Trial) newDaemon(name string, d *rig.Database) (*rig.Child, error) {
	agents := ""
	if t.Model != nil {
		agents = t.Model.Agent(name, fmt.Sprintf(", max_concurrent: %d", cmp.Or(t.Setup.Runs, 128)))
	}
	return t.Bench.NewDaemon(name, d, agents, t.Setup.workspace(t.API.ClientURL(name)))
}

func (s Setup) workspace(apiURL string) string {
	agent, window, mode := "echo", "", "queue"
	slack := []string{"bot_token: " + slacktest.Token, fmt.Sprintf("api_url: %q, post_rate: 0", apiURL)}
	if s.Sockets > 0 {
		slack = append(slack, fmt.Sprintf("mode: socket, app_token: %s, sockets: %d", slacktest.AppToken, s.Sockets))
	} else {
		slack = append(slack, "mode: http, signing_secret: "+rig.SigningSecret)
	}
	if s.Model != nil {
		agent = "model"
	}
	if s.Model != nil && !s.WholeThread {
		window = "context: {turns: 3, bytes: 20000, thread: 5}\n" // the answers are long, and only the last message counts
	}
	if s.Relay {
		slack = append(slack, "preview: stream, preview_every: 1s, working: off")
	} else if s.Streams {
		slack, mode = append(slack, "preview: stream, preview_every: 50ms, working: reaction"), "interrupt"
	} else if s.Model != nil {
		slack = append(slack, "preview: off, working: off")
	}
	if s.Timeout != "" {
		slack = append(slack, "timeout: "+s.Timeout)
	}
	return fmt.Sprintf(`id: %s
platform: slack
agent: %s
slack: {%s}
turns: {mode: %s, coalesce: %s, coalesce_max: %[5]s}
%[6]s`, rig.Workspace, agent, strings.Join(slack, ", "), mode, s.Coalesce, window)
}

// newFloor prepares a floor, which runs in this tool's own binary.
func (t *Trial) newFloor(name string, d *rig.Database) (*rig.Child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the floor: %w", err)
	}
	c, err := t.NewChild(self, name)
	if err != nil {
		return nil, err
	}
	c.Args = []string{"floor", "-listen", c.Address, "-api", t.API.ClientURL(name), "-store", c.StorePath()}
	if d != nil {
		c.Args = append(c.Args, "-postgres", d.URL)
	}
	if t.Model != nil {
		c.Args = append(c.Args, "-model", t.Model.URL(name), "-agent", t.Model.Dialect.Kind)
	}
	return c, nil
}
