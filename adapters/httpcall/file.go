package httpcall

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"parley/adapters"
	"parley/ingest/event"
)

// Download is the content of a file with the platform's description of it. It implements
// adapters.Described.
type Download struct {
	io.ReadCloser
	Info event.Attachment
}

// Describe implements adapters.Described.
func (d *Download) Describe() event.Attachment { return d.Info }

// maxRedirects bounds the redirects of one download.
const maxRedirects = 3

// NewFileClient returns a client for files that follows redirects only to addresses for which IsAt
// holds. It sends the token only to the host of the first request: another host authenticates the
// request in its own way, or serves a sign-in page. hint tells the operator what another redirect
// means.
func NewFileClient(transport *http.Transport, base *url.URL, hint string, domains ...string) *http.Client {
	return &http.Client{Transport: transport, CheckRedirect: func(next *http.Request, via []*http.Request) error {
		if !IsAt(next.URL, base, domains...) {
			return adapters.Permanently("redirected to " + next.URL.Host + ": " + hint)
		}
		if len(via) > maxRedirects {
			return adapters.Permanently("too many redirects")
		}
		for _, request := range append(via[1:len(via):len(via)], next) {
			if request.URL.Host != via[0].URL.Host {
				next.Header.Del("Authorization")
			}
		}
		return nil
	}}
}

// FileMethod is the method of a download of a file.
const FileMethod = "file"

// Open requests a file, with a bearer token unless that is empty. The caller closes the body of the
// response, whose status is 200. No error contains the address, which may contain a credential. A
// *adapters.SendError says whether the failure may pass. The meter counts the request as FileMethod.
func Open(ctx context.Context, client *http.Client, meter *Meter, address, token string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, errors.New("the address of the file is not valid")
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := client.Do(request)
	meter.Count(FileMethod, response)
	if refused, ok := errors.AsType[*adapters.SendError](err); ok { // a redirect
		return nil, refused
	}
	if err != nil {
		return nil, &adapters.SendError{Failure: adapters.Unclear, Err: WithoutURL(err)}
	}
	if code := response.StatusCode; code != http.StatusOK {
		_ = response.Body.Close()
		failure := adapters.Permanently("the platform answered " + response.Status)
		if code >= 500 || code == http.StatusTooManyRequests || code == http.StatusRequestTimeout {
			failure.Failure = adapters.Unclear
		}
		return nil, failure
	}
	return response, nil
}

// WithoutURL removes the address of a call from its error, because it may contain a credential.
func WithoutURL(err error) error {
	if failure, ok := errors.AsType[*url.Error](err); ok {
		return failure.Err
	}
	return err
}

// IsAt reports whether an address is at the host of base, which is the configured address of the
// platform, or, over https, in one of the platform's domains.
func IsAt(address, base *url.URL, domains ...string) bool {
	switch {
	case address.User != nil:
		return false
	case address.Scheme == base.Scheme && (address.Host == base.Host || isSameMachine(address, base)):
		return true
	}
	return address.Scheme == "https" && address.Port() == "" && IsIn(address, domains...)
}

// IsIn reports whether the host of an address is in one of the domains.
func IsIn(address *url.URL, domains ...string) bool {
	host := "." + strings.ToLower(address.Hostname())
	return slices.ContainsFunc(domains, func(domain string) bool { return strings.HasSuffix(host, "."+domain) })
}

// isSameMachine reports whether two addresses name the same port of this machine. A fake platform
// on this machine can have several host names.
func isSameMachine(a, b *url.URL) bool {
	isLocal := func(u *url.URL) bool { return u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback() }
	return isLocal(a) && isLocal(b) && a.Port() == b.Port()
}
