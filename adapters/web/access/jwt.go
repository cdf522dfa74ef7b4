package access

import (
	"context"
	"crypto"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"parley/adapters"
	"parley/adapters/web/exchange"
	"parley/adapters/web/payload"
	"parley/ingest/event"
)

const (
	// jwtLeeway is how far the clock of an issuer may differ from ours.
	jwtLeeway = time.Minute
	// maxSubject bounds the subject of a token, and maxJWTName the name of its user, in bytes and characters.
	maxSubject, maxJWTName = 255, 80
)

// jwtAlgorithms are the algorithms of signatures. Each has a public key: a secret that is shared with the
// issuer, and a token without a signature, are refused.
var jwtAlgorithms = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
}

// JWT admits the users of an issuer of signed tokens (JSON Web Tokens, RFC 7519). The zero value admits
// nobody.
type JWT struct {
	// Issuer is the iss of the tokens.
	Issuer string `yaml:"issuer"`
	// Audience is an aud of the tokens: they are meant for us.
	Audience string `yaml:"audience"`
	// JWKSURL is the address of the issuer's public keys, a JSON Web Key Set.
	JWKSURL string `yaml:"jwks_url"`
}

// validate returns every fault by key.
func (c JWT) validate() (faults event.FieldErrors) {
	if c == (JWT{}) {
		return nil
	}
	faults.Check(c.Issuer != "", "jwt.issuer", "is required: the iss of the tokens, such as https://login.example.com/")
	faults.Check(c.Audience != "", "jwt.audience", "is required: the aud of the tokens that are meant for this workspace")
	u, err := url.Parse(c.JWKSURL)
	isSafe := err == nil && u.Host != "" && u.User == nil && (u.Scheme == "https" || u.Scheme == "http" && isThisMachine(u.Hostname()))
	faults.Check(isSafe, "jwt.jwks_url", "must be the https address of the issuer's key set, such as https://login.example.com/.well-known/jwks.json, or an http address on this machine")
	return faults
}

func isThisMachine(host string) bool { return host == "localhost" || net.ParseIP(host).IsLoopback() }

// jwtUser is the user of a signed token.
type jwtUser struct {
	Actor   payload.Actor `json:"actor"`
	Name    string        `json:"name"`
	Expires time.Time     `json:"expires"`
	Key     string        `json:"key"` // the thumbprint of the key that signed the token
	By      JWT           `json:"by"`  // the setting that admits the token
}

// jwtMark begins the marks of the users of signed tokens; no token's id contains the colon.
const jwtMark = "jwt:"

// token returns the rights of the user, which are those of a token of its own.
func (u *jwtUser) token() Token {
	return Token{ID: jwtMark + string(u.Actor), Name: u.Name, Actor: u.Actor}
}

// mark names the user with the token's end, so that a ticket ends with it.
func (u *jwtUser) mark() string {
	raw, _ := json.Marshal(u) // texts and times always encode
	return jwtMark + string(raw)
}

// userOf is the reverse of mark; nil for the mark of another caller.
func userOf(mark string) *jwtUser {
	raw, ok := strings.CutPrefix(mark, jwtMark)
	u := new(jwtUser)
	if !ok || json.Unmarshal([]byte(raw), u) != nil {
		return nil
	}
	return u
}

// isAdmitted reports whether a workspace with a setting still admits the user.
func (k *KeySets) isAdmitted(u *jwtUser, by JWT) bool {
	return u.By == by && k.now().Before(u.Expires) && k.has(by.JWKSURL, u.Key)
}

// errJWT is the reason for which a signed token is refused.
type errJWT string

// Error returns the reason.
func (e errJWT) Error() string { return "the signed token is refused: " + string(e) }

// jwtClaims are the claims of a token that matter to us.
type jwtClaims struct {
	jwt.Claims
	Name      any `json:"name"`
	Preferred any `json:"preferred_username"`
}

// signed returns the user of a signed token and the workspace that admits it; nil for a text that is no
// signed token, or if none of the workspaces knows signed tokens. The error is errJWT if the token is
// refused, else errNoKeys or that of ctx.
func (k *KeySets) signed(ctx context.Context, workspaces []Workspace, raw string) (of Workspace, u *jwtUser, err error) {
	knowing := false
	for _, w := range workspaces {
		knowing = knowing || w.JWT != JWT{}
	}
	if !knowing || strings.Count(raw, ".") != 2 {
		return of, nil, nil
	}
	token, err := jwt.ParseSigned(raw, jwtAlgorithms)
	var claims jwtClaims
	if err == nil {
		err = token.UnsafeClaimsWithoutVerification(&claims)
	}
	if err != nil {
		return of, nil, errJWT("it is not a token with a signature of RS256, PS256, ES256 or EdDSA, or their longer forms")
	}
	found := false
	for _, w := range workspaces {
		if by := w.JWT; by != (JWT{}) && by.Issuer == claims.Issuer && claims.Audience.Contains(by.Audience) {
			if found {
				return of, nil, errJWT("it is for the audiences of several workspaces")
			}
			of, found = w, true
		}
	}
	if !found {
		return of, nil, errJWT("no workspace has its iss and aud")
	}
	u, err = k.verify(ctx, token, of.JWT)
	return of, u, err
}

// verify returns the user of a token.
func (k *KeySets) verify(ctx context.Context, token *jwt.JSONWebToken, by JWT) (*jwtUser, error) {
	header := token.Headers[0]
	if !isAccess(header) {
		return nil, errJWT("its typ is not JWT or at+jwt")
	}
	var claims jwtClaims
	key, err := k.find(ctx, by.JWKSURL, func(key *jose.JSONWebKey) bool {
		return (header.KeyID == "" || key.KeyID == header.KeyID) && (key.Algorithm == "" || key.Algorithm == header.Algorithm) && token.Claims(key.Key, &claims) == nil
	})
	switch {
	case err != nil:
		return nil, err
	case key == nil:
		return nil, errJWT("no key of the issuer fits its signature")
	}
	return claims.user(by, k.now(), thumbprintOf(key))
}

// isAccess reports whether the header of a token says that it admits a user. An issuer signs other kinds,
// such as a logout token, with the same key.
func isAccess(header jose.Header) bool {
	kind, _ := header.ExtraHeaders[jose.HeaderType].(string)
	kind = strings.TrimPrefix(strings.ToLower(kind), "application/")
	return kind == "" || kind == "jwt" || kind == "at+jwt"
}

// user returns the user of verified claims.
func (c *jwtClaims) user(by JWT, now time.Time, key string) (*jwtUser, error) {
	err := c.ValidateWithLeeway(jwt.Expected{Issuer: by.Issuer, AnyAudience: jwt.Audience{by.Audience}, Time: now}, jwtLeeway)
	switch {
	case errors.Is(err, jwt.ErrExpired):
		return nil, errJWT("it has expired")
	case errors.Is(err, jwt.ErrNotValidYet), errors.Is(err, jwt.ErrIssuedInTheFuture):
		return nil, errJWT("it is not valid yet")
	case err != nil:
		return nil, errJWT("its iss or aud is another one")
	case c.Expiry == nil:
		return nil, errJWT("it has no exp")
	case c.Subject == "" || len(c.Subject) > maxSubject:
		return nil, errJWT(fmt.Sprintf("its sub must have 1 to %d bytes", maxSubject))
	}
	return &jwtUser{Actor: subjectActor(by.Issuer, c.Subject), Name: c.name(), Expires: c.Expiry.Time().Add(jwtLeeway), Key: key, By: by}, nil
}

// subjectActor returns the user of a subject: its UUID, or else the UUIDv5 of
// "parley:jwt:<issuer>:<subject>" in the URL namespace.
func subjectActor(issuer, subject string) payload.Actor {
	if payload.IsUUID(subject) {
		return payload.Actor("user:" + subject).Lower()
	}
	return payload.Actor("user:" + payload.UUIDOf("jwt:"+issuer+":"+subject))
}

// name returns the display name of a user: its name, or the one that it prefers, or else its subject.
func (c *jwtClaims) name() string {
	for _, given := range []any{c.Name, c.Preferred} {
		if name, _ := given.(string); strings.ContainsFunc(name, unicode.IsGraphic) && strings.TrimSpace(name) != "" {
			return cutName(name)
		}
	}
	return cutName(c.Subject)
}

func cutName(name string) string {
	runes := []rune(strings.TrimSpace(event.Text(name)))
	return string(runes[:min(len(runes), maxJWTName)])
}

// thumbprintOf names a key (RFC 7638).
func thumbprintOf(key *jose.JSONWebKey) string {
	sum, _ := key.Thumbprint(crypto.SHA256) // a valid key has one
	return base64.RawURLEncoding.EncodeToString(sum)
}

// refuseSigned returns the error of a request with a signed token that admits nobody.
func (g Gate) refuseSigned(w http.ResponseWriter, r *http.Request, err error) error {
	if refused, ok := errors.AsType[errJWT](err); ok {
		return g.RefuseToken(w, r, refused.Error())
	}
	w.Header().Set("Retry-After", "10")
	return exchange.Fail(http.StatusServiceUnavailable, "busy", errNoKeys.Error())
}

// Check reads the keys of the issuer. It returns the finding that the answer is wrong.
func (c JWT) Check(ctx context.Context) ([]adapters.Finding, error) {
	if c == (JWT{}) {
		return nil, nil
	}
	_, err := readKeys(ctx, c.JWKSURL)
	if bad, ok := errors.AsType[errBadKeys](err); ok {
		return []adapters.Finding{{Key: "jwt.jwks_url", Words: "signed tokens cannot be verified: " + bad.Error(), Fault: true}}, nil
	}
	return nil, err
}
