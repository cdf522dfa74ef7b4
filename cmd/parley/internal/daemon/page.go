package daemon

import (
	"crypto/sha256"
	"encoding/base64"
	"html/template"
	"maps"
	"net/http"
	"slices"

	"parley/adapters"
)

// pageStyle is the style of the page. The policy of the page names its hash, so that no other style
// and no script applies.
const pageStyle = `body{font:1rem/1.5 system-ui,sans-serif;max-width:40rem;margin:3rem auto;padding:0 1rem}td,th{text-align:left;padding:.2rem 1rem .2rem 0}`

var pagePolicy = func() string {
	hash := sha256.Sum256([]byte(pageStyle))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}()

// page is the page at the root. It shows ids of the configuration and our own words, never the text of a
// platform or a person.
var page = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Parley</title>
<style>` + pageStyle + `</style>
<h1>Parley</h1>
{{if .Ready}}<p>Parley is running and takes messages.</p>{{else}}<p>Parley is running, but its store takes no messages now. Its log says why.</p>{{end}}
{{with .Workspaces}}<table>
<tr><th>Workspace<th>Platform<th>State
{{range .}}<tr><td>{{.ID}}<td>{{.Platform}}<td>{{.State}}
{{end}}</table>{{end}}
<p>This is an address for programs. To talk to an agent, run <code>parley chat</code> in a terminal.</p>
<ul>
<li><a href="/openapi.json">/openapi.json</a> describes the HTTP API.
<li><a href="/readyz">/readyz</a> shows the state of each workspace, <a href="/metrics">/metrics</a> the figures for Prometheus.
</ul>
`))

// pageRow is one workspace on the page.
type pageRow struct{ ID, Platform, State string }

// stateWords are the words of a workspace's state for people.
var stateWords = map[adapters.ConnectionState]string{
	adapters.Starting: "starting", adapters.Up: "up", adapters.Standby: "up on another node",
	adapters.Down: "down; the daemon tries again", adapters.Refused: "refused by the platform: run parley check",
}

// root answers a browser in plain words. Only a trusted caller sees the workspaces.
func (d *Daemon) root(w http.ResponseWriter, r *http.Request, trusted bool) {
	view := struct {
		Ready      bool
		Workspaces []pageRow
	}{Ready: d.probe.TakesMessages(r.Context()) == nil}
	if trusted {
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
