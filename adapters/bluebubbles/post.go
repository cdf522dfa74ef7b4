package bluebubbles

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
	"parley/adapters/bluebubbles/payload"
	"parley/adapters/markdown"
)

const (
	// maxText is the maximum length of one bubble, in characters.
	maxText = 4000
	// maxBubbles is the number of paragraphs up to which each one is a bubble of its own.
	maxBubbles = 4
	// fileOver is the length in characters above which an answer is sent as a file.
	fileOver = 20_000
	// maxFile bounds a file, in bytes.
	// https://support.apple.com/en-us/104972
	maxFile = 100 << 20
	// receiptTime bounds the call that marks a chat as read.
	receiptTime = 2 * time.Second
)

// Format converts an agent's CommonMark to plain text. Each paragraph is a bubble if there are
// few of them. The text has no placeholders of attachments, because the rows that we read have none.
func (a *Adapter) Format(text string, _ []string) []string {
	posts := markdown.Format(payload.Typed(text), markdown.Plain, maxText)
	var bubbles []string
	for _, post := range posts {
		for paragraph := range strings.SplitSeq(post, "\n\n") {
			if paragraph = strings.TrimSpace(paragraph); paragraph != "" {
				bubbles = append(bubbles, paragraph)
			}
		}
	}
	if len(bubbles) == 0 || len(bubbles) > maxBubbles {
		return posts
	}
	return bubbles
}

// Send posts a text or a file. Messages has no message with both. With the private API, the
// first bubble of an answer in a group refers to its question.
func (a *Adapter) Send(ctx context.Context, post adapters.Post) (string, error) {
	if post.File != nil && post.Text != "" {
		return "", adapters.Permanently("a message has a text or a file, not both")
	}
	chat, private, err := a.destination(ctx, post.To)
	if err != nil {
		return "", err
	}
	first := a.isFirst(post.To)
	guid, err := a.put(ctx, post, chat, private, first)
	if errors.Is(err, errNoHelper) && a.config.Method == MethodAuto {
		_, _ = a.askInfo(ctx) // the next message may know that the helper is gone
		private = false
		guid, err = a.put(ctx, post, chat, private, first)
	}
	if err == nil {
		a.answered(ctx, post.To, chat, private && first)
	}
	return guid, err
}

// put posts a text or a file in one way, and returns its guid.
func (a *Adapter) put(ctx context.Context, post adapters.Post, chat string, private, first bool) (string, error) {
	var sent struct {
		GUID string `json:"guid"`
	}
	var err error
	if post.File != nil {
		err = a.postFile(ctx, post, chat, private, &sent)
	} else {
		body := map[string]any{"chatGuid": chat, "message": post.Text, "tempGuid": tempGUID(post.Key), "method": method(private)}
		if private && first && strings.Contains(chat, ";+;") && isGUID(post.To.Place) {
			body["selectedMessageGuid"] = post.To.Place
		}
		err = a.call(ctx, http.MethodPost, "message/text", nil, body, &sent)
	}
	if err == nil && sent.GUID == "" {
		err = &adapters.SendError{Failure: adapters.Unclear, Err: errors.New("the answer has no guid")}
	}
	return sent.GUID, err
}

// destination returns the chat's guid, and whether the private API sends. Its failures have no
// effect.
func (a *Adapter) destination(ctx context.Context, to adapters.Address) (chat string, private bool, err error) {
	if private, err = a.private(ctx); err == nil {
		chat, err = a.chatGUID(ctx, to)
	}
	return chat, private, adapters.WithoutEffect(err)
}

func method(private bool) string {
	if private {
		return MethodPrivateAPI
	}
	return MethodAppleScript
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
func (a *Adapter) isFirst(to adapters.Address) bool {
	last, _ := a.read.Load(to.Channel)
	return last != to.Place
}

// answered notes that an answer has begun, and marks its chat as read if it is so configured.
// The mark has no effect on the answer, so its failure is ignored.
func (a *Adapter) answered(ctx context.Context, to adapters.Address, chat string, mark bool) {
	a.read.Store(to.Channel, to.Place)
	if !mark || a.config.ReadReceipts != ReceiptsAnswered {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, receiptTime)
	defer cancel()
	_ = a.call(ctx, http.MethodPost, "chat/"+escape(chat)+"/read", nil, nil, nil)
}

// postFile posts a file.
func (a *Adapter) postFile(ctx context.Context, post adapters.Post, chat string, private bool, sent any) error {
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
	return a.send(ctx, http.MethodPost, "message/attachment", nil, form.FormDataContentType(), body.Bytes(), sent)
}
