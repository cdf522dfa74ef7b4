package slack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/slack-go/slack"

	"parley/ingest/event"
)

// maxRedirects bounds the redirects of one download.
const maxRedirects = 3

// newFileClient returns a client that follows redirects only within Slack. It sends the
// token only to the host of the first request. Another host authenticates the request
// in its own way, or serves the sign-in page for browsers.
func newFileClient(transport *http.Transport, base *url.URL) *http.Client {
	return &http.Client{
		Transport: transport,
		CheckRedirect: func(next *http.Request, via []*http.Request) error {
			if !isSlackURL(next.URL, base, redirectDomains...) {
				return fmt.Errorf("redirected to %s: the bot may not read the file, or lacks the scope files:read", next.URL.Host)
			}
			if len(via) > maxRedirects {
				return errors.New("too many redirects")
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

// Fetch opens a file by its id. It asks files.info for the address, and reads only from
// Slack's file host or the API's host. The caller closes the reader, bounds its size,
// and bounds the time by ctx.
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

// download is the content of a file, with the file's description from files.info. In a
// shared channel, a message may carry only the id of a file of the other team.
type download struct {
	io.ReadCloser
	info event.Attachment
}

// Describe implements adapters.Described.
func (d *download) Describe() event.Attachment { return d.info }

// describe returns the attachment that files.info describes.
func describe(file *slack.File) event.Attachment {
	wire := wireFile{ID: file.ID, Name: file.Name, Title: file.Title, Mimetype: file.Mimetype, Size: int64(file.Size)}
	return wire.attachment()
}

// fileURL returns the download address of a file. It is an error if the address is at a
// host that must not get the token.
func (a *Adapter) fileURL(file *slack.File) (*url.URL, error) {
	location, err := url.Parse(firstOf(file.URLPrivateDownload, file.URLPrivate))
	if err != nil {
		return nil, errors.New("slack's address of the file can't be read")
	}
	if !isSlackURL(location, a.base, filesHost) {
		return nil, fmt.Errorf("the file is at %q, which is not slack's", location.Host)
	}
	return location, nil
}

// checkDownload returns an error unless the response is the file. If the bot may not
// read the file, Slack answers with an error status or with its sign-in page. An HTML
// response is the file only if files.info describes an HTML file, and it comes from the
// requested path or from a host without a sign-in page.
func checkDownload(response *http.Response, asked *url.URL, mimeType string) error {
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("slack answered %s", response.Status)
	}
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	from := response.Request.URL
	moved := from.Path != asked.Path && (from.Host == asked.Host || isIn(from, slackDomain))
	isPage := kind == "text/html" && (!strings.HasPrefix(mimeType, "text/html") || moved)
	if isPage {
		return errors.New("slack sent its sign-in page: the bot may not read the file, or lacks the scope files:read")
	}
	return nil
}

// withoutURL removes a download's address from an error, because the address may
// contain a credential.
func withoutURL(err error) error {
	if failure, ok := errors.AsType[*url.Error](err); ok {
		return failure.Err
	}
	return err
}
