package guard

import (
	"net/http"
	"net/url"
	"strings"
)

// IsLocal reports whether a program on this machine has sent the request, as far as the
// connection and the headers show: the peer's address is loopback, and there is no sign of a
// proxy, which may forward anybody's requests.
func IsLocal(r *http.Request) bool {
	for name := range r.Header {
		if isForwarding(strings.ToLower(name)) {
			return false
		}
	}
	return peer(r).IsLoopback()
}

// isForwarding reports whether proxies add the header with this name, in lower case. The known
// ones have many names: Forwarded, X-Forwarded-Port, X-Real-IP, CF-Connecting-IP, CF-Ray,
// True-Client-IP, X-Original-URL, X-Envoy-Internal, X-ProxyUser-Ip, Via.
func isForwarding(name string) bool {
	for _, part := range []string{"forward", "proxy", "envoy", "original-"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return strings.HasSuffix(name, "ip") || strings.HasPrefix(name, "cf-") || name == "via" || name == "cdn-loop"
}

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
