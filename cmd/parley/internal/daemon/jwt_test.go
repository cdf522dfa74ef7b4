package daemon_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"parley/cmd/parley/internal/doctor"
	"parley/config"
)

const (
	issuerName = "https://login.example.com/"
	audience   = "parley-ours"
	ivyID      = "user:11111111-2222-4333-8444-555555555555"
)

// issuer signs tokens, and serves its keys.
type issuer struct {
	t    *testing.T
	url  string
	mu   sync.Mutex
	keys map[string]*ecdsa.PrivateKey // those that it serves, by id
	down bool
	read int // number of reads of the keys
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	i := &issuer{t: t, keys: map[string]*ecdsa.PrivateKey{}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		i.mu.Lock()
		defer i.mu.Unlock()
		if i.read++; i.down {
			http.Error(w, "down", http.StatusBadGateway)
			return
		}
		set := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: []byte("a shared secret of the issuer"), KeyID: "shared", Algorithm: "HS256"}}}
		for id, key := range i.keys {
			set.Keys = append(set.Keys, jose.JSONWebKey{Key: key.Public(), KeyID: id, Use: "sig"})
		}
		_ = json.NewEncoder(w).Encode(set)
	}))
	t.Cleanup(server.Close)
	i.url = server.URL + "/keys"
	i.rotate("k1")
	return i
}

// rotate replaces the keys by a new one.
func (i *issuer) rotate(id string) {
	i.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		i.t.Fatal(err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys = map[string]*ecdsa.PrivateKey{id: key}
}

// claims are those of a good token.
func (h *harness) claims(sub string) map[string]any {
	now := h.clock.now()
	return map[string]any{"iss": issuerName, "aud": []string{"other", audience}, "sub": sub, "name": "Ivy", "iat": now.Unix(), "exp": now.Add(time.Hour).Unix()}
}

// sign returns a token with claims, signed by the key with an id.
func (i *issuer) sign(id string, claims map[string]any) string {
	i.t.Helper()
	i.mu.Lock()
	key := i.keys[id]
	i.mu.Unlock()
	return i.signBy(jose.ES256, jose.JSONWebKey{Key: key, KeyID: id}, "JWT", claims)
}

func (i *issuer) signBy(algorithm jose.SignatureAlgorithm, key any, kind string, claims map[string]any) string {
	i.t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key}, (&jose.SignerOptions{}).WithType(jose.ContentType(kind)))
	if err == nil {
		var token string
		if token, err = jwt.Signed(signer).Claims(claims).Serialize(); err == nil {
			return token
		}
	}
	i.t.Fatal(err)
	return ""
}

// jwtPlan is chatPlan with an issuer.
func jwtPlan(i *issuer) plan {
	p := chatPlan("sqlite:data/parley.db")
	p.files["workspaces/ours.yaml"] = strings.Replace(p.files["workspaces/ours.yaml"], "web:\n",
		"web:\n  jwt: {issuer: "+issuerName+", audience: "+audience+", jwks_url: \""+i.url+"\"}\n", 1)
	return p
}

// TestSignedTokens checks that users of an issuer are callers like others, each its own.
func TestSignedTokens(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	h := open(t, jwtPlan(i))
	ivy, auth0 := i.sign("k1", h.claims(strings.ToUpper(ivyID[5:]))), i.sign("k1", h.claims("auth0|7"))
	thread := "/" + decode[struct{ ID string }](t, h.chat(http.StatusCreated, "POST", "", ivy, `{"participants":["`+bobID+`"]}`)).ID
	golden(t, h.chat(http.StatusCreated, "POST", thread+"/messages", ivy, `{"content":"hi"}`), `{"id":"ID","thread_id":"ID","sender_id":"`+ivyID+`","role":"user",
		"content":"hi","metadata":null,"created_at":"TIME","client_message_id":null,"thread_seq":1}`)
	h.chat(http.StatusOK, "GET", thread, bobToken, "")
	h.chat(http.StatusNotFound, "GET", thread, auth0, "")
	same(t, h.web("GET", "ours/threads"+thread+"/messages", auth0, "").status, http.StatusNotFound)
	same(t, h.web("GET", "ours/threads", ivy, "").status, http.StatusForbidden)
	posted := h.web("POST", "ours/messages", ivy, `{"thread_id":"`+thread[1:]+`","content":"and here"}`)
	if posted.status != http.StatusAccepted || !strings.Contains(posted.body, `"sender_id":"`+ivyID+`","sender_display_name":"Ivy"`) {
		t.Errorf("%d %s", posted.status, posted.body)
	}
	other := decode[struct{ ID string }](t, h.chat(http.StatusCreated, "POST", "", auth0, `{}`)).ID
	list := h.chat(http.StatusOK, "GET", "/"+other, auth0, "")
	if !strings.Contains(list, `"user:b3806078-7492-5ece-aee2-8b9945f26ba1"`) { // the UUIDv5 of its issuer and subject
		t.Errorf("the participants are %s", list)
	}
	same(t, i.read, 1)
}

// TestRefusedSignedTokens compares the words for each token that is refused.
func TestRefusedSignedTokens(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	h := open(t, jwtPlan(i))
	with := func(key string, value any) string {
		claims := h.claims("ivy")
		if claims[key] = value; value == nil {
			delete(claims, key)
		}
		return i.sign("k1", claims)
	}
	at := func(d time.Duration) int64 { return h.clock.now().Add(d).Unix() }
	weak, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	good := i.sign("k1", h.claims("ivy"))
	parts := strings.Split(good, ".")
	forged := strings.Split(with("sub", "bob"), ".")
	const noAlgorithm = "it is not a token with a signature of RS256, PS256, ES256 or EdDSA, or their longer forms"
	for name, c := range map[string]struct{ token, words string }{
		"expired":             {with("exp", at(-2*time.Minute)), "it has expired"},
		"without an end":      {with("exp", nil), "it has no exp"},
		"not yet valid":       {with("nbf", at(2*time.Minute)), "it is not valid yet"},
		"of the future":       {with("iat", at(2*time.Minute)), "it is not valid yet"},
		"of another issuer":   {with("iss", "https://evil.example.com/"), "no workspace has its iss and aud"},
		"for somebody else":   {with("aud", "other"), "no workspace has its iss and aud"},
		"without a subject":   {with("sub", nil), "its sub must have 1 to 255 bytes"},
		"a long subject":      {with("sub", strings.Repeat("x", 256)), "its sub must have 1 to 255 bytes"},
		"without a signature": {"eyJhbGciOiJub25lIn0." + parts[1] + ".", noAlgorithm},
		"of a shared secret":  {i.signBy(jose.HS256, jose.JSONWebKey{Key: []byte("a shared secret of the issuer!!!"), KeyID: "shared"}, "JWT", h.claims("ivy")), noAlgorithm},
		"of another key":      {i.signBy(jose.RS256, jose.JSONWebKey{Key: weak, KeyID: "k1"}, "JWT", h.claims("ivy")), "no key of the issuer fits its signature"},
		"of an unknown key":   {i.signBy(jose.RS256, jose.JSONWebKey{Key: weak, KeyID: "k9"}, "JWT", h.claims("ivy")), "no key of the issuer fits its signature"},
		"with other claims":   {parts[0] + "." + forged[1] + "." + parts[2], "no key of the issuer fits its signature"},
		"of another kind":     {i.signBy(jose.ES256, jose.JSONWebKey{Key: i.keys["k1"], KeyID: "k1"}, "logout+jwt", h.claims("ivy")), "its typ is not JWT or at+jwt"},
		"no token at all":     {"a.b.c", noAlgorithm},
	} {
		for _, got := range []answer{h.request("GET", chatPath, c.token, "", ""), h.web("GET", "ours/threads", c.token, "")} {
			want := "the signed token is refused: " + c.words
			if got.status != http.StatusUnauthorized && got.status != http.StatusTooManyRequests || !strings.Contains(got.body, want) {
				t.Errorf("%s: %d %s, want %s", name, got.status, got.body, want)
			}
		}
	}
	h.chat(http.StatusOK, "GET", "", i.signBy(jose.ES256, jose.JSONWebKey{Key: i.keys["k1"]}, "at+jwt", h.claims("ivy")), "") // the only key needs no id
	h.chat(http.StatusOK, "GET", "", ownToken, "")
}

// TestSignedTokenEnds checks that a stream and a ticket end with the token, with its key and with the
// setting.
func TestSignedTokenEnds(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(h *harness, i *issuer, p plan){
		"its time": func(h *harness, _ *issuer, _ plan) { h.clock.advance(62 * time.Minute) },
		"its key": func(h *harness, i *issuer, _ plan) {
			i.rotate("k2")
			h.clock.advance(time.Minute)
			h.chat(http.StatusOK, "GET", "", i.sign("k2", h.claims("other")), "")
		},
		"the setting": func(h *harness, _ *issuer, p plan) { h.rotate(p, audience, "parley-theirs") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := newIssuer(t)
			p := jwtPlan(i)
			h := open(t, p)
			claims := h.claims(ivyID[5:])
			ivy := i.sign("k1", claims)
			ticket := func() string {
				return decode[struct{ Ticket string }](t, h.request(http.MethodPost, "/api/v1/tickets", ivy, "application/json", `{"path":"`+newsPath+`"}`).body).Ticket
			}
			live, byTicket, unused := &listener{t, h.stream(newsPath, ivy, "")}, &listener{t, h.stream(newsPath+"?ticket="+ticket(), "", "")}, ticket()
			h.sharedThread("open", ivyID)
			same(t, []string{live.heard(), byTicket.heard()}, []string{"1 thread ", "1 thread "})
			end(h, i, p)
			h.sharedThread("open", ivyID)
			for _, l := range []*listener{live, byTicket} {
				for l.lines.Scan() {
					if line := l.lines.Text(); strings.HasPrefix(line, "data") {
						t.Errorf("after the end, a stream has %s", line)
					}
				}
			}
			same(t, h.get(newsPath+"?ticket="+unused).status, http.StatusUnauthorized)
			same(t, h.request("GET", chatPath, ivy, "", "").status, http.StatusUnauthorized)
		})
	}
}

// TestKeysOfAnIssuer checks when the keys are read: if a token needs them, and at most every ten seconds.
func TestKeysOfAnIssuer(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	i.down = true
	h := open(t, jwtPlan(i))
	reads := func(want int) {
		t.Helper()
		i.mu.Lock()
		defer i.mu.Unlock()
		same(t, i.read, want)
	}
	set := func(down bool) {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.down = down
	}
	reads(0)
	ivy := i.sign("k1", h.claims("ivy"))
	for range 3 {
		h.chat(http.StatusServiceUnavailable, "GET", "", ivy, "")
		same(t, h.web("GET", "ours/threads", ivy, "").status, http.StatusServiceUnavailable)
	}
	reads(1)
	h.chat(http.StatusOK, "GET", "", ownToken, "")
	set(false)
	h.clock.advance(10 * time.Second)
	h.chat(http.StatusOK, "GET", "", ivy, "")
	i.rotate("k2")
	h.chat(http.StatusUnauthorized, "GET", "", i.sign("k2", h.claims("ivy")), "") // too early for another read
	reads(2)
	h.clock.advance(10 * time.Second)
	h.chat(http.StatusOK, "GET", "", i.sign("k2", h.claims("ivy")), "")
	h.chat(http.StatusUnauthorized, "GET", "", ivy, "")
	reads(3)
	set(true)
	h.clock.advance(2 * time.Hour)
	h.chat(http.StatusOK, "GET", "", i.sign("k2", h.claims("ivy")), "") // the old keys hold while there are no newer ones
	h.clock.advance(24 * time.Hour)
	h.chat(http.StatusServiceUnavailable, "GET", "", i.sign("k2", h.claims("ivy")), "")
}

// TestKeysThatOneIDStandsFor checks that an issuer may replace a key under its id, and that one of several keys
// signs a token that names no key.
func TestKeysThatOneIDStandsFor(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	h := open(t, jwtPlan(i))
	for range 2 {
		h.chat(http.StatusOK, "GET", "", i.sign("k1", h.claims("ivy")), "")
		h.clock.advance(10 * time.Second)
		i.rotate("k1")
	}
	h.chat(http.StatusOK, "GET", "", i.sign("k1", h.claims("ivy")), "")
	first := i.keys["k1"]
	i.rotate("k2")
	i.mu.Lock()
	i.keys["k1"] = first
	i.mu.Unlock()
	h.clock.advance(10 * time.Second)
	for _, id := range []string{"k1", "k2"} {
		h.chat(http.StatusOK, "GET", "", i.signBy(jose.ES256, i.keys[id], "JWT", h.claims("ivy")), "")
	}
}

// TestCheckReadsTheKeys of the issuer, and tells what is wrong with them.
func TestCheckReadsTheKeys(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	file := filepath.Join(t.TempDir(), "parley.yaml")
	write(t, file, "listen: 127.0.0.1:0\nworkspaces: ours.yaml\n")
	write(t, filepath.Join(filepath.Dir(file), "ours.yaml"), "id: ours\nplatform: web\nagent: echo\nweb: {jwt: {issuer: "+issuerName+", audience: a, jwks_url: \""+i.url+"\"}}\n")
	c, err := config.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	if found := doctor.Ask(t.Context(), c); len(found) != 0 {
		t.Errorf("%+v", found)
	}
	i.keys = nil
	found := doctor.Ask(t.Context(), c)
	const want = "signed tokens cannot be verified: the set has no public key for signatures: RSA of at least 2048 bits, EC or Ed25519"
	if len(found) != 1 || !found[0].Fault || found[0].Key != "web.jwt.jwks_url" || found[0].Words != want {
		t.Errorf("%+v", found)
	}
	i.down = true
	if found := doctor.Ask(t.Context(), c); len(found) != 1 || !strings.HasSuffix(found[0].Words, "the issuer answered 502 Bad Gateway") {
		t.Errorf("%+v", found)
	}
}
