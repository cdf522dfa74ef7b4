package slack

import (
	"net"
	"net/url"
	"slices"
	"strings"
)

// slackDomain has the Web API, the uploads, and the pages for browsers.
const slackDomain = "slack.com"

// filesHost serves the files that are shared in Slack.
// https://docs.slack.dev/reference/objects/file-object
const filesHost = "files.slack.com"

// redirectDomains are the domains to which filesHost may redirect a download.
var redirectDomains = []string{slackDomain, "slack-edge.com", "slack-files.com"}

// isSlackURL reports whether an address is at the host of the configured API address,
// or, over https, in one of Slack's given domains.
func isSlackURL(address, base *url.URL, domains ...string) bool {
	switch {
	case address.User != nil:
		return false
	case address.Scheme == base.Scheme && (address.Host == base.Host || isSameMachine(address, base)):
		return true
	}
	return address.Scheme == "https" && address.Port() == "" && isIn(address, domains...)
}

// isIn reports whether the host of an address is in one of the domains.
func isIn(address *url.URL, domains ...string) bool {
	host := "." + strings.ToLower(address.Hostname())
	return slices.ContainsFunc(domains, func(domain string) bool { return strings.HasSuffix(host, "."+domain) })
}

// isSameMachine reports whether two addresses name the same port of this machine. A
// fake Slack on this machine can have several host names.
func isSameMachine(a, b *url.URL) bool {
	isLocal := func(u *url.URL) bool { return u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback() }
	return isLocal(a) && isLocal(b) && a.Port() == b.Port()
}
