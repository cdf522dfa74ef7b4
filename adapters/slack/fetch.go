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

// filesHost serves what is shared in Slack.
// https://docs.slack.dev/reference/objects/file-object
const filesHost = "files.slack.com"

// maxRedirects is how often a download may be sent elsewhere on its own host.
const maxRedirects = 3

// newFileClient follows redirects on the same host alone: the token goes no
// further, and neither do we.
func newFileClient(transport *http.Transport) *http.Client {
	return &http.Client{
		Transport: transport,
		CheckRedirect: func(next *http.Request, via []*http.Request) error {
			if first := via[0].URL; next.URL.Scheme != first.Scheme || next.URL.Host != first.Host {
				return fmt.Errorf("sent on to %s: the bot may not read the file, or lacks the scope files:read", next.URL.Host)
			}
			if len(via) > maxRedirects {
				return errors.New("sent on too often")
			}
			return nil
		},
	}
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
	return response.Body, nil
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
// asks a browser to sign in; both come where the bot may not read the file.
func checkDownload(response *http.Response, asked *url.URL, mimeType string) error {
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("slack answered %s", response.Status)
	}
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	isPage := kind == "text/html" && (!strings.HasPrefix(mimeType, "text/html") || response.Request.URL.Path != asked.Path)
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
