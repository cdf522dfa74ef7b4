package daemon

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"parley/adapters/web/access"
	"parley/cmd/parley/internal/boot"
	"parley/config"
	"parley/ingest/event"
)

// sayHello tells the operator how to reach a workspace that is up, once for each adapter.
func (d *Daemon) sayHello(a *account) {
	if d.hello == nil {
		return
	}
	a.hello.Do(func() {
		switch {
		case config.IsLocal(a.Config):
			token := a.Config.(*access.Config).Tokens[0].Token.Reveal()
			d.hello("Open the conversation in a browser: " + d.baseURL() + "/chat#" + token)
			d.hello(localHello(d.chat, d.baseURL(), a.ID, token))
		case a.platform.API:
			d.hello(fmt.Sprintf("Say hello in workspace %[1]s: open %[2]s/chat in a browser, or POST to %[2]s/api/v1/workspaces/%[1]s/messages, with one of its tokens", a.ID, d.baseURL()))
		default:
			d.hello(fmt.Sprintf("Say hello in workspace %s: mention the bot in %s, or write to it directly", a.ID, a.platform.Title))
		}
	})
}

// sayConsole tells the operator how to reach the console.
func (d *Daemon) sayConsole() {
	if d.hello != nil {
		d.hello("Open the console at " + d.consoleURL + ", in another terminal: " + d.open)
	}
}

// baseURL returns the address of the HTTP server for a client on this machine.
func (d *Daemon) baseURL() string { return boot.BaseURL(d.Addr().String()) }

// chatPage returns the address of the conversation in a browser; empty if no workspace has one.
func (d *Daemon) chatPage() string {
	if slices.ContainsFunc(d.Setup().Config.Workspaces, func(w config.Workspace) bool { return w.Platform == event.Web }) {
		return d.publicURL() + "/chat"
	}
	return ""
}

// publicURL returns the address of the HTTP server for platforms.
func (d *Daemon) publicURL() string {
	return cmp.Or(strings.TrimSuffix(d.Setup().Config.PublicURL, "/"), d.baseURL())
}

// localHello returns the command that talks to the built-in workspace, its token, and the commands that
// post to a new thread and read it.
func localHello(chat, base, workspace, token string) string {
	thread := uuid.NewString()
	return fmt.Sprintf(`Talk to the agent, in another terminal: %[5]s
The token of workspace %[1]s is %[4]s
Say hello in workspace %[1]s:
  curl -sS %[2]s/api/v1/workspaces/%[1]s/messages -H 'Authorization: Bearer %[4]s' -H 'Content-Type: application/json' -d '{"thread_id":"%[3]s","content":"hello"}'
Read the answer:
  curl -sS %[2]s/api/v1/workspaces/%[1]s/threads/%[3]s/messages -H 'Authorization: Bearer %[4]s'`, workspace, base, thread, token, chat)
}

// onlyLocal reports whether a configuration has the built-in workspace alone, so that no file names one.
func onlyLocal(c *config.Config) bool { return len(c.Workspaces) == 1 && c.HasLocal() }
