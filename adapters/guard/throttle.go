package guard

import (
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"
)

const (
	// maxFailures is the number of failures within failuresPer that one address may have
	// before it is throttled.
	maxFailures = 20
	failuresPer = time.Minute
	// maxAddresses bounds the addresses whose failures are counted.
	maxAddresses = 1024
	// lastBytes is the time that a refused caller has to send its body, so that it gets to
	// read the answer.
	lastBytes = time.Second
)

// key is an IPv4 address, or an IPv6 network of 64 bits, which usually has one owner.
type key = netip.Prefix

// failures counts the failed authentications by address.
type failures struct {
	mu sync.Mutex
	of map[key]*recent
}

// recent are the times of an address's last failures, in a ring.
type recent struct {
	at   [maxFailures]time.Time
	next int
}

// Unauthorized returns the refusal of a request whose token, secret or signature is wrong or
// missing: 401, or 429 after 20 failures of its address within a minute. Callers compare
// first, so that a right secret is never refused for its address: behind a tunnel all callers
// have the same one.
func (g *Guard) Unauthorized(w http.ResponseWriter, r *http.Request, reason string) *Refusal {
	w.Header().Set("Connection", "close")
	// A writer without deadlines belongs to a server whose own limits apply.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(lastBytes))
	if g.failures.add(keyOf(peer(r)), time.Now()) {
		w.Header().Set("Retry-After", "60")
		return &Refusal{http.StatusTooManyRequests, "throttled"}
	}
	return &Refusal{http.StatusUnauthorized, reason}
}

// Bearer returns the bearer token of a request; "" if it has none.
func Bearer(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return token
}

// add counts a failure. It returns true if the address already has its failures of the last
// minute.
func (f *failures) add(k key, now time.Time) (throttled bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	last := f.of[k]
	if last == nil {
		f.forgetOne()
		last = new(recent)
		f.of[k] = last
	}
	throttled = now.Sub(last.at[last.next]) < failuresPer
	last.at[last.next] = now
	last.next = (last.next + 1) % maxFailures
	return throttled
}

// forgetOne makes room for an address. It may forget any other one: a caller with so many
// addresses has enough attempts without it.
func (f *failures) forgetOne() {
	if len(f.of) < maxAddresses {
		return
	}
	for k := range f.of {
		delete(f.of, k)
		return
	}
}

func keyOf(address netip.Addr) key {
	bits := address.BitLen()
	if address.Is6() {
		bits = 64
	}
	network, _ := address.Prefix(bits) // an unknown address has the zero key
	return network
}

// peer returns the address of the other end of the connection; the zero address if unknown.
func peer(r *http.Request) netip.Addr {
	at, _ := netip.ParseAddrPort(r.RemoteAddr)
	return at.Addr().Unmap().WithZone("")
}
