package send

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/slack-go/slack"

	"parley/adapters"
	"parley/adapters/httpcall"
	"parley/adapters/markdown"
	"parley/adapters/slack/call"
	"parley/adapters/slack/payload"
)

// maxUpload bounds a file that Slack accepts, in bytes.
// https://slack.com/help/articles/201330736
const maxUpload = 1 << 30

// sendFile uploads a file and posts it with the text as its comment. Nothing is visible
// before the last call, so any earlier failure may be retried. Such a post takes no
// metadata, so the file's name carries its key.
// https://docs.slack.dev/messaging/working-with-files#uploading_files
func (s *Sender) sendFile(ctx context.Context, post adapters.Post) (string, error) {
	file := post.File
	content, err := file.Content(ctx, maxUpload)
	if err != nil {
		return "", err
	}
	target, err := s.client.API.GetUploadURLExternalContext(ctx, slack.GetUploadURLExternalParameters{
		FileName: payload.FileName(file.Name, post.Key), FileSize: int(file.Size),
	})
	if err != nil {
		return "", adapters.WithoutEffect(s.client.SendError("files.getUploadURLExternal", post.To.Channel, err))
	}
	if err := s.upload(ctx, target.UploadURL, file, content); err != nil {
		return "", adapters.WithoutEffect(s.client.SendError("upload a file", post.To.Channel, err))
	}
	_, err = s.client.API.CompleteUploadExternalContext(ctx, slack.CompleteUploadExternalParameters{
		Files:           []slack.FileSummary{{ID: target.FileID, Title: file.Name}},
		Channel:         post.To.Channel,
		ThreadTimestamp: payload.ThreadTS(post.To),
		InitialComment:  strings.Join(markdown.Format(post.Text, markdown.Slack, textLimit), "\n"),
	})
	if ok, failed := s.respond(ctx, post, err, ""); ok && failed == nil {
		return responseID(post), nil
	}
	if err != nil {
		return "", s.client.SendError("files.completeUploadExternal", post.To.Channel, err)
	}
	return s.sharedMessageID(ctx, target.FileID, post)
}

// upload sends a file's content to the address that Slack has given. The upload needs
// no token.
func (s *Sender) upload(ctx context.Context, to string, file *adapters.File, content []byte) error {
	target, err := url.Parse(to)
	if err != nil || !httpcall.IsAt(target, s.client.Base, call.SlackDomains...) {
		return adapters.Permanently("slack's upload address is not an address of slack")
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(content))
	if err != nil {
		return adapters.Permanently("slack's address for the file can't be read")
	}
	request.Header.Set("Content-Type", payload.FirstOf(file.MimeType, "application/octet-stream"))
	if _, err = s.client.Do(request); err != nil {
		return fmt.Errorf("send %s: %w", file.Name, httpcall.WithoutURL(err))
	}
	return nil
}

// sharedMessageID returns the id of the message that shares a file. Slack may answer
// the upload before that message exists. Then the failure is Unclear, and the delivery
// must search for the message later.
func (s *Sender) sharedMessageID(ctx context.Context, id string, post adapters.Post) (string, error) {
	file, _, _, err := s.client.API.GetFileInfoContext(ctx, id, 1, 1)
	if err == nil {
		for _, shares := range []map[string][]slack.ShareFileInfo{file.Shares.Public, file.Shares.Private} {
			for _, share := range shares[post.To.Channel] {
				return payload.MessageID(post.To.Channel, share.Ts), nil
			}
		}
		err = errors.New("the file is not in the channel yet")
	}
	return "", &adapters.SendError{Failure: adapters.Unclear, Err: fmt.Errorf("files.info in slack channel %s: %w", post.To.Channel, err)}
}
