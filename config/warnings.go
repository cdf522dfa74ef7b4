package config

import (
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"parley/adapters"
	"parley/config/secret"
	"parley/ingest"
	"parley/ingest/journal/postgres"
)

// warn adds a warning of a key.
func (f *file) warn(key, words string) {
	f.warnings = append(f.warnings, Fault{File: f.name, Line: f.line(key), Key: key, Words: words})
}

// warnings returns what is unsafe in a configuration without faults.
func (l *loader) warnings(c *Config) Faults {
	l.main.warnAll(c)
	folders, all := []string{filepath.Dir(l.main.name)}, Faults{}
	for _, w := range c.Workspaces {
		if f := l.places[w.ID]; f != nil {
			f.warnWritable("", f.name)
			f.warnReadable()
			f.warnPlain(string(w.Platform), reflect.ValueOf(w.Config))
			f.warnUnmeasured(&w, c.Agents)
			f.warnStrangers("", w.Settings)
			for _, id := range slices.Sorted(maps.Keys(w.Channels)) {
				f.warnStrangers(f.entries[id], w.Channels[id])
			}
			if warner, ok := w.Config.(adapters.Warner); ok {
				for _, found := range warner.Warnings() {
					f.warn(join(string(w.Platform), found.Field), found.Message)
				}
			}
			folders, all = append(folders, filepath.Dir(f.name)), append(all, f.warnings...)
		}
	}
	slices.Sort(folders)
	l.main.warnWritable("", slices.Compact(folders)...)
	return append(l.main.warnings, all...)
}

// warnAll adds the warnings of parley.yaml, its values and the folders of the data.
func (f *file) warnAll(c *Config) {
	f.warnWritable("", f.name)
	f.warnReadable()
	if c.Metrics.Token.IsZero() && (c.PublicURL != "" || !isLoopback(c.Listen)) {
		f.warn("metrics.token", "is not set, so everybody who reaches the listener reads /metrics, and the ids of all workspaces in /readyz: set a token")
	}
	f.warnAlerts(c)
	for _, fault := range c.environmentFaults() {
		f.warn("tracing.otlp", fault)
	}
	if c.Store.Engine == SQLite {
		f.warnWritable("store", filepath.Dir(c.Store.Path))
	}
	f.warnWritable("attachments.dir", c.Attachments.Dir)
	f.warnPostgres(c.Store.URL, "store.url")
	f.warnPostgres(c.Store.ListenURL, "store.listen_url")
	f.warnPlain("", reflect.ValueOf(c))
}

// warnAlerts warns of alerts that reach nobody.
func (f *file) warnAlerts(c *Config) {
	const untold = ", so nobody is told of troubles: "
	to, w := c.Alerts.To, c.Workspace(c.Alerts.To.Workspace)
	if w == nil {
		if to.Workspace != "" {
			f.warn("alerts.to.workspace", "names no configured workspace"+untold+"parley status lists them")
		} else if f.has("alerts") {
			f.warn("alerts", "has no place to write to"+untold+"set to, with a workspace and a channel or a user")
		}
		return
	}
	switch platform, _ := Platform(w.Platform); {
	case platform.Conversation == nil:
		f.warn("alerts.to.workspace", "is one where the bot cannot write first"+untold+"name a workspace of a chat platform")
	case to.Channel != "" && !ingest.IsID(to.Channel, platform.IsChannel):
		f.warn("alerts.to.channel", "is no id of a channel of "+string(w.Platform)+untold+"write the id, not the name")
	case to.User != "" && !ingest.IsID(to.User, platform.IsUser):
		f.warn("alerts.to.user", "is no id of a user of "+string(w.Platform)+untold+"write the id, not the name")
	}
}

// warnUnmeasured warns of limits of tokens to which the runs of an agent do not count.
func (f *file) warnUnmeasured(w *Workspace, agents []Agent) {
	ids := []string{w.Agent}
	for _, s := range w.Channels {
		ids = append(ids, s.Agent)
	}
	for _, a := range agents {
		kind, _ := Kind(a.Kind)
		if !kind.Unmeasured || !slices.Contains(ids, a.ID) {
			continue
		}
		for key, most := range map[string]int{"limits.tokens_per_user": w.Limits.TokensPerUser, "limits.tokens_per_workspace": w.Limits.TokensPerWorkspace} {
			if most > 0 {
				f.warn(key, fmt.Sprintf("does not bound the agent %s, because an agent of the kind %s reports no tokens: use limits.runs_per_user for it", a.ID, a.Kind))
			}
		}
	}
}

// warnStrangers warns if the settings at a path ask about strangers and there are none.
func (f *file) warnStrangers(path string, s Settings) {
	if key := join(path, "policy.strangers"); f.has(key) && s.Policy.Strangers == ingest.StrangersAsk && s.Policy.Everybody() {
		f.warn(key, "ask has no effect, because everybody is admitted: set policy.allow_users, or a list of roles or groups")
	}
}

// warnWritable warns of files and folders that every user of the machine can change. A missing
// one does not count.
func (f *file) warnWritable(key string, paths ...string) {
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil && info.Mode()&0o002 != 0 {
			f.warn(key, fmt.Sprintf("every user of this machine can change %s: run chmod o-w on it", path))
		}
	}
}

// warnReadable warns of files with secrets that every user of the machine can read. A secret in the
// environment, or in a file that only its owner can read, needs no other place.
func (f *file) warnReadable() {
	for _, path := range slices.Sorted(maps.Keys(f.secrets)) {
		if info, err := os.Stat(path); err == nil && info.Mode()&0o004 != 0 {
			f.warn(f.secrets[path], fmt.Sprintf("every user of this machine can read the secrets in %s: run chmod o-r on it", path))
		}
	}
}

// warnPostgres warns of an address of PostgreSQL if TLS does not protect the connection to
// another host.
func (f *file) warnPostgres(address secret.Value, key string) {
	isFar := func(host string) bool { return !strings.HasPrefix(host, "/") && !adapters.IsNear(host) } // a path is a socket of this machine
	if slices.ContainsFunc(postgres.PlainHosts(address.Reveal()), isFar) {
		f.warn(key, "the connection to another host may have no TLS: add sslmode=verify-full to the address")
	}
}

// ours are the keys of the addresses under which others reach Parley: nothing is sent to them.
var ours = []string{"public_url", "console.public_url"}

// warnPlain warns of each setting below a value, in structs and lists of structs, that is an http address of another host.
func (f *file) warnPlain(path string, value reflect.Value) {
	switch value.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !value.IsNil() {
			f.warnPlain(path, value.Elem())
		}
	case reflect.Struct:
		if value.Type() == reflect.TypeFor[secret.Value]() {
			return
		}
		for _, one := range settings(value) {
			f.warnPlain(join(path, one.key), one.value)
		}
	case reflect.Slice:
		for i := range value.Len() {
			if value.Index(i).Kind() == reflect.Struct { // a list of texts has no addresses that Parley calls
				f.warnPlain(fmt.Sprintf("%s[%d]", path, i), value.Index(i))
			}
		}
	case reflect.String:
		if u, err := url.Parse(value.String()); err == nil && u.Scheme == "http" && !adapters.IsNear(u.Hostname()) && !slices.Contains(ours, path) {
			f.warn(path, "http sends secrets and messages readable to another host: use https")
		}
	}
}
