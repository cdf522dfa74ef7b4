package adapters

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// ParseAddress parses an http or https address without credentials.
func ParseAddress(s string) (*url.URL, bool) {
	u, err := url.Parse(s)
	return u, err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil
}

// IsBase reports whether s is an http or https address without credentials, query and fragment, so
// that paths can be appended to it.
func IsBase(s string) bool {
	_, ok := ParseAddress(s)
	return ok && !strings.ContainsAny(s, "?#")
}

// privateDomains are the domains that the public DNS does not have.
var privateDomains = []string{".localhost", ".local", ".internal", ".lan", ".home.arpa"}

// sharedNet is the range for addresses behind a carrier or in an overlay network.
// https://www.rfc-editor.org/rfc/rfc6598
var sharedNet = netip.MustParsePrefix("100.64.0.0/10")

// IsNear reports whether a host is this machine or in a private network, as far as its name
// shows. A name without a dot is one of a private network.
func IsNear(host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		ip = ip.Unmap()
		return ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast() || ip.IsUnspecified() || sharedNet.Contains(ip)
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return !strings.Contains(host, ".") || slices.ContainsFunc(privateDomains, func(domain string) bool { return strings.HasSuffix(host, domain) })
}
