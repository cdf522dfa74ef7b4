package slack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/slack-go/slack"

	"parley/ingest/event"
)

// filesHost serves what is shared in Slack.
// https://docs.slack.dev/reference/objects/file-object
const filesHost = "files.slack.com"

// storeHosts are the domains from which files.slack.com has others serve what it
// holds: they are Slack's own.
var storeHosts = []string{".slack.com", ".slack-edge.com", ".slack-files.com"}

// maxRedirects is how often a download may be sent on.
const maxRedirects = 3

// newFileClient follows redirects within Slack alone. The token stays at the host
// that was asked first: whoever is behind it has its own way to know us, or is the
// page on which a browser signs in.
func newFileClient(transport *http.Transport, base *url.URL) *http.Client {
	return &http.Client{
		Transport: transport,
		CheckRedirect: func(next *http.Request, via []*http.Request) error {
			if !isSlacks(next.URL, base) {
				return fmt.Errorf("sent on to %s: the bot may not read the file, or lacks the scope files:read", next.URL.Host)
			}
			if len(via) > maxRedirects {
				return errors.New("sent on too often")
			}
			for _, request := range append(via[1:len(via):len(via)], next) {
				if request.URL.Host != via[0].URL.Host {
					next.Header.Del("Authorization")
				}
			}
			return nil
		},
	}
}

// isSlacks says whether an address is Slack's own, or of the host that we were
// told to take for the API's.
func isSlacks(address, base *url.URL) bool {
	if address.User != nil {
		return false
	}
	if address.Scheme == base.Scheme && (address.Host == base.Host || isSameMachine(address, base)) {
		return true
	}
	return address.Scheme == "https" && address.Port() == "" && slices.ContainsFunc(storeHosts, func(domain string) bool {
		return strings.HasSuffix("."+strings.ToLower(address.Hostname()), domain)
	})
}

// isSameMachine says whether two addresses are of one server on this machine: a
// Slack that somebody plays here has several names.
func isSameMachine(a, b *url.URL) bool {
	isLocal := func(u *url.URL) bool { return u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback() }
	return isLocal(a) && isLocal(b) && a.Port() == b.Port()
}

// Fetch opens a file by its id: files.info tells where it stands, and that is
// read only at Slack's file host or the API's own. The caller closes the reader,
// bounds what it reads, and bounds the time by ctx.
func (a *Adapter) Fetch(ctx context.Context, attachment event.Attachment) (io.ReadCloser, error) {
	content, err := a.fetch(ctx, attachment.ID)
	if err != nil {
		return nil, fmt.Errorf("fetch slack file %s: %w", attachment.ID, err)
	}
	return content, nil
}

func (a *Adapter) fetch(ctx context.Context, id string) (io.ReadCloser, error) {
	file, _, _, err := a.api.GetFileInfoContext(ctx, id, 1, 1)
	if err != nil {
		return nil, fmt.Errorf("files.info: %w", err)
	}
	location, err := a.fileURL(file)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, location.String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+a.config.BotToken.Reveal())
	response, err := a.files.Do(request)
	if err != nil {
		return nil, withoutURL(err)
	}
	if err := checkDownload(response, location, file.Mimetype); err != nil {
		_ = response.Body.Close()
		return nil, err
	}
	return &download{response.Body, describe(file)}, nil
}

// download is a file that is being read, and what files.info told of it: a message
// in a shared channel may carry no more than the id of one from the other side.
type download struct {
	io.ReadCloser
	told event.Attachment
}

// Describe implements adapters.Described.
func (d *download) Describe() event.Attachment { return d.told }

// describe is a file as files.info shows it.
func describe(file *slack.File) event.Attachment {
	wire := wireFile{ID: file.ID, Name: file.Name, Title: file.Title, Mimetype: file.Mimetype, Size: int64(file.Size)}
	return wire.attachment()
}

// fileURL is where the file can be downloaded, if that is a place for our token.
func (a *Adapter) fileURL(file *slack.File) (*url.URL, error) {
	location, err := url.Parse(firstOf(file.URLPrivateDownload, file.URLPrivate))
	if err != nil {
		return nil, errors.New("slack's address of the file can't be read")
	}
	slacks := location.Scheme == "https" && location.Host == filesHost
	apis := location.Scheme == a.base.Scheme && location.Host == a.base.Host
	if location.User != nil || (!slacks && !apis) {
		return nil, fmt.Errorf("stands at %q, which is not slack's", location.Host)
	}
	return location, nil
}

// checkDownload tells the file from an error and from the page on which Slack
// asks a browser to sign in; both come where the bot may not read the file. A page
// that is a file comes from where it was asked for, or from a host that has no
// sign-in page.
func checkDownload(response *http.Response, asked *url.URL, mimeType string) error {
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("slack answered %s", response.Status)
	}
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	from := response.Request.URL
	moved := from.Path != asked.Path && (from.Host == asked.Host || strings.HasSuffix("."+from.Hostname(), ".slack.com"))
	isPage := kind == "text/html" && (!strings.HasPrefix(mimeType, "text/html") || moved)
	if isPage {
		return errors.New("slack sent its sign-in page: the bot may not read the file, or lacks the scope files:read")
	}
	return nil
}

// withoutURL keeps a download's address, which may carry a credential, out of
// the error's words.
func withoutURL(err error) error {
	var failure *url.Error
	if errors.As(err, &failure) {
		return failure.Err
	}
	return err
}
