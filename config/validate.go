package config

import (
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"parley/adapters"
	"parley/assembly/turn"
	"parley/config/secret"
	"parley/ingest"
	"parley/ingest/event"
)

// idForm is the form of the ids of workspaces and agents, which are parts of URLs,
// thread keys and metric labels.
var idForm = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`)

const idWords = "must be 1 to 32 characters of a-z, 0-9 and -, and must not begin with -"

// checks collects the faults of settings, each under its key. Words follow the key in a
// report: they tell what is wrong and what to do, and contain no configured value other
// than ids.
type checks struct{ faults event.FieldErrors }

// require adds a fault of the key unless ok.
func (c *checks) require(ok bool, key, words string) { c.faults.Check(ok, key, words) }

// oneOf adds a fault of the key unless the value is one of two or more allowed ones.
func (c *checks) oneOf(key, value string, allowed ...string) {
	last := len(allowed) - 1
	c.require(slices.Contains(allowed, value), key, "must be "+strings.Join(allowed[:last], ", ")+" or "+allowed[last])
}

// under adds the faults of a component whose settings are under the key.
func (c *checks) under(key string, faults event.FieldErrors) {
	for _, fault := range faults {
		c.faults.Check(false, join(key, fault.Field), fault.Message)
	}
}

// unique maps each value that may be given only once to its first place.
type unique map[string]string

// add records the place of a value. If the value has a place already, add returns that
// place. Otherwise it returns "". An empty value is never recorded.
func (u unique) add(value, place string) (before string) {
	if value == "" {
		return ""
	}
	if before, ok := u[value]; ok {
		return before
	}
	u[value] = place
	return ""
}

// faults returns the faults of parley.yaml's values.
func (c *Config) faults() event.FieldErrors {
	var check checks
	check.require(isListen(c.Listen), "listen", "must be host:port, such as 127.0.0.1:8484")
	check.require(c.PublicURL == "" || adapters.IsBase(c.PublicURL), "public_url", "must be an http or https address without credentials, or empty")
	check.oneOf("log.level", c.Log.Level, "debug", "info", "warn", "error")
	check.oneOf("log.format", c.Log.Format, "auto", "text", "tint", "json")
	check.require(c.Glob != "", "workspaces", "must be a pattern of file names, such as workspaces/*.yaml")
	check.require(c.Shutdown > 0, "shutdown", "must be more than 0s")
	check.require(c.RememberedWindows >= 0, "remembered_windows", "must be 0 or more, such as 16MiB")
	check.under("retention", c.Retention.Validate())
	check.under("attachments", c.Attachments.Validate())
	check.require(c.Metrics.Token.IsZero() || !c.Metrics.Token.IsWeak(secret.MinLength), "metrics.token", "must be a random word of at least 24 characters, or be empty")
	check.under("", c.operatorFaults())
	check.under("alerts", c.Alerts.faults())
	check.under("tracing", c.Tracing.faults())
	check.require(len(c.Agents) > 0, "agents", "must list at least one agent, such as {id: echo, kind: echo}")
	ids := unique{}
	for i, agent := range c.Agents {
		at := fmt.Sprintf("agents[%d]", i)
		check.under(at, agent.faults())
		before := ids.add(agent.ID, at)
		check.require(before == "", at+".id", "is also the id of "+before+": give each agent its own id")
	}
	for i, agent := range c.Agents {
		for k, id := range agent.Workstreams.Agents {
			known := slices.ContainsFunc(c.Agents, func(a Agent) bool { return a.ID == id })
			check.require(known, fmt.Sprintf("agents[%d].workstreams.agents[%d]", i, k), fmt.Sprintf("%q is no id of agents", id))
		}
	}
	return check.faults
}

// hostForm is the form of a host's name or address.
var hostForm = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9.-]{0,251}[a-zA-Z0-9])?$`)

// faults returns the faults of one agent, except for an id that another agent has.
func (a Agent) faults() event.FieldErrors {
	var check checks
	check.require(idForm.MatchString(a.ID), "id", idWords)
	check.oneOf("kind", a.Kind, kindNames()...)
	check.oneOf("files", a.Files, turn.FilesText, turn.FilesNames)
	for i, name := range a.Show {
		check.oneOf(fmt.Sprintf("show[%d]", i), name, turn.Shown()...)
	}
	for i, host := range a.ImageHosts {
		check.require(hostForm.MatchString(host), fmt.Sprintf("image_hosts[%d]", i), "must be the name of a host, such as images.example.com, without a scheme, a port or a path")
	}
	check.under("workstreams", a.Workstreams.Validate())
	check.under("tools", a.Tools.Validate())
	if a.Config != nil {
		check.under("", a.Config.Validate())
		for i, id := range a.Config.Bounds().Approvers {
			check.require(isApprover(id), fmt.Sprintf("approvers[%d]", i), "must be a user's id, role: and a role's id, or group: and a user group's id, not a name: names can be taken by others")
		}
	}
	return check.faults
}

// isApprover reports whether a string may name an approver: a user's id, or a role or a user group in the form of one of the platforms.
func isApprover(id string) bool {
	role, isRole := strings.CutPrefix(id, ingest.RolePrefix)
	group, isGroup := strings.CutPrefix(id, ingest.GroupPrefix)
	return ingest.IsID(id, nil) && (!isRole && !isGroup || slices.ContainsFunc(platforms, func(p adapters.Platform) bool {
		return isRole && p.IsRole != nil && p.IsRole(role) || isGroup && p.IsGroup != nil && p.IsGroup(group)
	}))
}

// isLoopback reports whether only this machine reaches a listener at an address.
func isLoopback(address string) bool {
	host, _, _ := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// isListen reports whether an address is host:port with a numeric port.
func isListen(address string) bool {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err == nil
}
