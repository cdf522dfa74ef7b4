package config

import (
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"parley/ingest/event"
)

// idForm is what workspaces and agents are called: it stands in addresses, keys and
// labels.
var idForm = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`)

const idWords = "must be 1 to 32 of a-z, 0-9 and -, and not begin with -"

// faults judges what parley.yaml says.
func (c *Config) faults() event.FieldErrors {
	var faults event.FieldErrors
	check := faults.Check
	check(isListen(c.Listen), "listen", "must be host:port, such as 127.0.0.1:8484")
	check(c.PublicURL == "" || isAddress(c.PublicURL), "public_url", "must be an http or https address without credentials, or empty")
	check(strings.Contains(" debug info warn error ", " "+c.Log.Level+" "), "log.level", "must be debug, info, warn or error")
	check(strings.Contains(" auto text json ", " "+c.Log.Format+" "), "log.format", "must be auto, text or json")
	check(c.Glob != "", "workspaces", "must be a pattern of file names such as workspaces/*.yaml")
	check(c.Shutdown > 0, "shutdown", "must be more than 0s")
	faults = append(faults, prefixed("retention", c.Retention.Validate())...)
	faults = append(faults, prefixed("attachments", c.Attachments.Validate())...)
	check(len(c.Agents) > 0, "agents", "must hold an agent at least, such as {id: echo, kind: echo}")
	for i, agent := range c.Agents {
		faults = append(faults, prefixed(fmt.Sprintf("agents[%d]", i), agent.faults(c.Agents[:i]))...)
	}
	return faults
}

// faults judges an agent beside those that stand before it.
func (a Agent) faults(before []Agent) event.FieldErrors {
	var faults event.FieldErrors
	switch {
	case !idForm.MatchString(a.ID):
		faults = append(faults, event.FieldError{Field: "id", Message: idWords})
	case find(before, a.ID) >= 0:
		words := fmt.Sprintf("is that of agents[%d] too: each agent needs an id of its own", find(before, a.ID))
		faults = append(faults, event.FieldError{Field: "id", Message: words})
	}
	switch a.Kind {
	case KindEcho:
	case KindOpenAI:
		faults = append(faults, a.OpenAI.Validate()...)
	default:
		faults = append(faults, event.FieldError{Field: "kind", Message: "must be echo or openai"})
	}
	return faults
}

// find returns the place of the agent with this id, or -1.
func find(agents []Agent, id string) int {
	for i, agent := range agents {
		if agent.ID == id {
			return i
		}
	}
	return -1
}

func isListen(address string) bool {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err == nil
}

// isAddress tells an http or https address that holds no credentials.
func isAddress(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil && u.RawQuery == ""
}
