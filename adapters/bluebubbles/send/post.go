package send

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"mime/multipart"
	"net/http"
	"strconv"
	"strings"
	"time"

	"parley/adapters"
	"parley/adapters/bluebubbles/call"
	"parley/adapters/bluebubbles/payload"
)

const (
	// maxFile bounds a file, in bytes.
	// https://support.apple.com/en-us/104972
	maxFile = 100 << 20
	// receiptTime bounds the call that marks a chat as read.
	receiptTime = 2 * time.Second
)

// Send posts a text or a file. Messages has no message with both. With the private API, the
// first bubble of an answer in a group refers to its question.
func (s *Sender) Send(ctx context.Context, post adapters.Post) (string, error) {
	if post.File != nil && post.Text != "" {
		return "", adapters.Permanently("a message has a text or a file, not both")
	}
	chat, private, err := s.destination(ctx, post.To)
	if err != nil {
		return "", err
	}
	first := s.isFirst(post.To)
	guid, err := s.put(ctx, post, chat, private, first)
	if errors.Is(err, call.ErrNoHelper) && s.client.Method == call.MethodAuto {
		_, _ = s.client.AskInfo(ctx) // the next message may know that the helper is gone
		private = false
		guid, err = s.put(ctx, post, chat, private, first)
	}
	if err == nil {
		s.answered(ctx, post.To, chat, private && first)
	}
	return guid, err
}

// put posts a text or a file in one way, and returns its guid.
func (s *Sender) put(ctx context.Context, post adapters.Post, chat string, private, first bool) (string, error) {
	if chat == "" {
		return s.begin(ctx, post, private)
	}
	var sent struct {
		GUID string `json:"guid"`
	}
	var err error
	if post.File != nil {
		err = s.postFile(ctx, post, chat, private, &sent)
	} else {
		body := map[string]any{"chatGuid": chat, "message": post.Text, "tempGuid": tempGUID(post.Key), "method": method(private)}
		if private && first && strings.Contains(chat, ";+;") && isGUID(post.To.Place) {
			body["selectedMessageGuid"] = post.To.Place
		}
		err = s.client.Call(ctx, http.MethodPost, "message/text", nil, body, &sent)
	}
	if err == nil && sent.GUID == "" {
		err = &adapters.SendError{Failure: adapters.Unclear, Err: errors.New("the answer has no guid")}
	}
	return sent.GUID, err
}

// destination returns the chat's guid, and whether the private API sends. Its failures have no
// effect.
func (s *Sender) destination(ctx context.Context, to adapters.Address) (chat string, private bool, err error) {
	if private, err = s.client.Private(ctx); err == nil {
		chat, err = s.chatGUID(ctx, to)
	}
	return chat, private, adapters.WithoutEffect(err)
}

func method(private bool) string {
	if private {
		return call.MethodPrivateAPI
	}
	return call.MethodAppleScript
}

// tempGUID returns a temporary guid that contains a delivery's key and is new in each attempt.
func tempGUID(key string) string {
	return key + payload.AttemptMark + strconv.FormatUint(rand.Uint64(), 36)
}

// isGUID reports whether the id of an answered message is a message's guid, and not made from
// a reaction.
func isGUID(id string) bool { return id != "" && !strings.ContainsRune(id, '/') }

// isFirst reports whether the answer to a message has not begun yet, as far as this process
// knows.
func (s *Sender) isFirst(to adapters.Address) bool {
	last, _ := s.read.Load(to.Channel)
	return last != to.Place
}

// answered notes that an answer has begun, and marks its chat as read if it is so configured.
// The mark has no effect on the answer, so its failure is ignored.
func (s *Sender) answered(ctx context.Context, to adapters.Address, chat string, mark bool) {
	s.read.Store(to.Channel, to.Place)
	if chat == "" || !mark || s.settings.ReadReceipts != ReceiptsAnswered {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, receiptTime)
	defer cancel()
	_ = s.client.Call(ctx, http.MethodPost, "chat/"+call.Escape(chat)+"/read", nil, nil, nil)
}

// postFile posts a file.
func (s *Sender) postFile(ctx context.Context, post adapters.Post, chat string, private bool, sent any) error {
	content, err := post.File.Content(ctx, maxFile)
	if err != nil {
		return err
	}
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for _, field := range [][2]string{{"chatGuid", chat}, {"tempGuid", tempGUID(post.Key)}, {"name", post.File.Name}, {"method", method(private)}} {
		_ = form.WriteField(field[0], field[1]) // a buffer takes every write
	}
	part, _ := form.CreateFormFile("attachment", post.File.Name)
	_, _ = part.Write(content)
	_ = form.Close()
	return s.client.Upload(ctx, "message/attachment", form.FormDataContentType(), body.Bytes(), sent)
}
