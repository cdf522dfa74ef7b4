package guard

import (
	"net/http"
	"net/url"
	"strings"
)

// IsLocalHost reports whether the Host of a request names this machine. A web page of another
// site can make a browser send requests to a loopback address, but only with the Host of that
// site.
func IsLocalHost(r *http.Request) bool {
	host := url.URL{Host: r.Host}
	switch strings.ToLower(host.Hostname()) {
	case "localhost", "127.0.0.1", "::1":
		return true
	}
	return false
}
