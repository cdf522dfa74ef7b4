package daemon

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"html/template"
	"maps"
	"net/http"
	"slices"
	"strings"

	"parley/adapters"
)

// pageStyle is the style of the page. The policy of the page names its hash, so that no other style
// and no script applies.
const pageStyle = `:root{color-scheme:light dark}body{font:1rem/1.5 system-ui,sans-serif;max-width:40rem;margin:3rem auto;padding:0 1rem;background:light-dark(#fff,#16181d);color:light-dark(#1a1c21,#e8e9ed)}
a{color:light-dark(#3b5bdb,#91a7ff)}table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.375rem 1rem .375rem 0;border-bottom:1px solid light-dark(#dcdfe6,#343945)}
nav{display:flex;flex-wrap:wrap;gap:.5rem;margin:1.5rem 0}nav a{border:1px solid light-dark(#dcdfe6,#343945);border-radius:8px;padding:.375rem .75rem;text-decoration:none}nav a:first-child{background:light-dark(#3b5bdb,#91a7ff);color:light-dark(#fff,#10142b)}
code{font:.875em ui-monospace,monospace}footer{font-size:.875rem}`

var pagePolicy = func() string {
	hash := sha256.Sum256([]byte(pageStyle))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}()

// page is the page at the root. It shows ids of the configuration and our own words, never the text of a
// platform or a person.
var page = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Parley</title>
<link rel="icon" href="data:,">
<style>` + pageStyle + `</style>
<h1>Parley</h1>
{{if .Ready}}<p>Parley is running and takes messages.</p>{{else}}<p>Parley is running, but its store takes no messages now. Its log says why.</p>{{end}}
{{with .Workspaces}}<table>
<tr><th>Workspace<th>Platform<th>State
{{range .}}<tr><td>{{.ID}}<td>{{.Platform}}<td>{{.State}}
{{end}}</table>{{end}}
{{if or .Chat .Console}}<nav>{{if .Chat}}<a href="/chat">Talk to the agent</a>{{end}}{{with .Console}}<a href="{{.}}">Console</a>{{end}}</nav>{{end}}
{{if .Chat}}<p>The page asks for a token: <code>parley run</code> prints an address that has it. In a terminal, run <code>parley chat</code>.</p>{{end}}
<footer><p>For programs: <a href="/openapi.json">/openapi.json</a> describes the HTTP API,
<a href="/readyz">/readyz</a> shows the state of each workspace, <a href="/metrics">/metrics</a> the figures for Prometheus.</p></footer>
`))

// pageRow is one workspace on the page.
type pageRow struct{ ID, Platform, State string }

// stateWords are the words of a workspace's state for people.
var stateWords = map[adapters.ConnectionState]string{
	adapters.Starting: "starting", adapters.Up: "up", adapters.Standby: "up on another node",
	adapters.Down: "down; the daemon tries again", adapters.Refused: "refused by the platform: run parley check",
}

// root answers a browser in plain words. Only a trusted caller sees the workspaces and the console's address.
func (d *Daemon) root(w http.ResponseWriter, r *http.Request, trusted bool) {
	view := struct {
		Ready      bool
		Workspaces []pageRow
		Chat       bool
		Console    string
	}{Ready: d.probe.TakesMessages(r.Context()) == nil, Chat: d.chatPage() != ""}
	if trusted {
		view.Console = cmp.Or(strings.TrimSuffix(d.Setup().Config.Console.PublicURL, "/"), d.consoleURL)
		accounts := d.accounts.all()
		for _, id := range slices.Sorted(maps.Keys(accounts)) {
			state, _ := accounts[id].links.status()
			view.Workspaces = append(view.Workspaces, pageRow{id, accounts[id].platform.Title, stateWords[state.State]})
		}
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", pagePolicy)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.Header().Set("Cache-Control", "no-store")
	_ = page.Execute(w, view) // an error means that the caller has hung up
}
