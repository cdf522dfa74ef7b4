package files

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/url"
	"path"
	"strings"
	"sync"
	"time"

	"parley/adapters/web/payload"
	"parley/ingest/event"
)

// signPath begins the path of every link.
const signPath = "/storage/v1/object/sign/"

// The errors of a link that its reader cannot use.
var (
	ErrNoLink  = errors.New("must be a link of this server with its token, as POST /api/v1/agent/attachments returns it")
	ErrExpired = errors.New("is a link whose time has ended; read the message again, or send the file again")
)

// Links makes and checks the links under which files can be read for a time:
// {base}/storage/v1/object/sign/{bucket}/{path}?token=. The token is a JSON Web Token, signed
// with HMAC-SHA256, and holds all facts about the file.
type Links struct {
	// Base returns our public address without a final slash.
	Base func() string
	// Key returns the secret key of all signatures. Links keeps the first one.
	Key func(ctx context.Context) ([]byte, error)
	// TTL is how long a link is valid.
	TTL time.Duration
	Now func() time.Time

	mu  sync.Mutex
	key []byte
}

// link are the claims of a token.
type link struct {
	Bucket    string `json:"bucket"`
	Path      string `json:"path"`
	Workspace string `json:"workspace"`
	Name      string `json:"name"`
	MimeType  string `json:"mime_type"`
	Size      int64  `json:"size"`
	Expires   int64  `json:"exp"` // unix seconds
}

// file returns the file of a link.
func (l link) file() event.Attachment {
	return event.Attachment{ID: path.Base(l.Path), Name: l.Name, MimeType: l.MimeType, Size: l.Size, Copy: &event.Copy{Bucket: l.Bucket, Path: l.Path}}
}

// Sign returns a new link to a workspace's file, which has a copy.
func (l *Links) Sign(ctx context.Context, workspace string, file event.Attachment) (string, error) {
	claims, err := json.Marshal(link{
		Bucket: file.Copy.Bucket, Path: file.Copy.Path, Workspace: workspace, Name: file.Name, MimeType: file.MimeType, Size: file.Size,
		Expires: l.Now().Add(l.TTL).Unix(),
	})
	if err != nil {
		return "", err
	}
	signed := tokenHeader + "." + base64.RawURLEncoding.EncodeToString(claims)
	signature, err := l.signature(ctx, signed)
	if err != nil {
		return "", err
	}
	bucket, path := payload.Place(*file.Copy)
	return l.Base() + signPath + bucket + "/" + path + "?token=" + signed + "." + signature, nil
}

// tokenHeader begins every token. No other algorithm is accepted.
var tokenHeader = base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`))

// signature returns the signature of a text.
func (l *Links) signature(ctx context.Context, signed string) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.key == nil {
		key, err := l.Key(ctx)
		if err != nil {
			return "", err
		}
		l.key = key
	}
	mac := hmac.New(sha256.New, l.key)
	mac.Write([]byte(signed))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)), nil
}

// check returns the link with a token, which must be for this place: a bucket and a path with
// a slash between them. Its errors are ErrNoLink, ErrExpired, or those of Key.
func (l *Links) check(ctx context.Context, place, token string) (link, error) {
	var claims link
	end := max(0, strings.LastIndexByte(token, '.'))
	signature, err := l.signature(ctx, token[:end])
	if err != nil {
		return claims, err
	}
	body, ours := strings.CutPrefix(token[:end], tokenHeader+".")
	if !hmac.Equal([]byte("."+signature), []byte(token[end:])) || !ours { // the encoded form has no second spelling
		return claims, ErrNoLink
	}
	raw, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil || json.Unmarshal(raw, &claims) != nil || place != claims.Bucket+"/"+claims.Path {
		return claims, ErrNoLink
	}
	if l.Now().Unix() >= claims.Expires {
		return claims, ErrExpired
	}
	return claims, nil
}

// named returns the file of a link that a message of a workspace has. Nothing is fetched: the
// address must be ours, and the token valid and of the same workspace.
func (l *Links) named(ctx context.Context, workspace, address string) (event.Attachment, error) {
	rest, ours := strings.CutPrefix(address, l.Base()+signPath)
	place, query, _ := strings.Cut(rest, "?")
	values, err := url.ParseQuery(query)
	if !ours || err != nil || len(values) != 1 || len(values["token"]) != 1 {
		return event.Attachment{}, ErrNoLink
	}
	claims, err := l.check(ctx, place, values.Get("token"))
	if err == nil && claims.Workspace != workspace {
		err = ErrNoLink
	}
	return claims.file(), err
}
