package access

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/google/uuid"

	"parley/adapters/guard"
	"parley/adapters/web/exchange"
	"parley/config/secret"
)

// RunTokens makes and checks the tokens with which agents use the tools during a run. A token is the run's id with its HMAC-SHA256
// under a key of the journal, so that each node knows it, also after a restart.
type RunTokens struct {
	// Key returns the secret key. RunTokens keeps the first one.
	Key func(ctx context.Context) ([]byte, error)

	key atomic.Pointer[[]byte]
}

// runTokenPrefix begins every token of a run, and pushTokenPrefix that of its reports: errors of agents hide both.
const runTokenPrefix, pushTokenPrefix = "parley-run-", "parley-push-"

// Token returns the token of a run. An error is the store's.
func (t *RunTokens) Token(ctx context.Context, run string) (secret.Value, error) {
	sum, err := t.sum(ctx, "run:"+run)
	return secret.New(runTokenPrefix + run + "-" + sum), err
}

// Push returns the token that admits a report about a run, by the id that its agent knows. An error is the store's.
func (t *RunTokens) Push(ctx context.Context, known string) (secret.Value, error) {
	sum, err := t.sum(ctx, "push:"+known)
	return secret.New(pushTokenPrefix + sum), err
}

// sum returns the HMAC of words in hex.
func (t *RunTokens) sum(ctx context.Context, words string) (string, error) {
	key := t.key.Load()
	if key == nil {
		made, err := t.Key(ctx)
		if err != nil {
			return "", err
		}
		key = &made
		t.key.Store(key)
	}
	mac := hmac.New(sha256.New, *key)
	mac.Write([]byte(words)) // never fails
	return hex.EncodeToString(mac.Sum(nil)), nil
}

// run returns the run that a token is of; empty if it is of none.
func (t *RunTokens) run(ctx context.Context, given string) (run string, err error) {
	id, _ := strings.CutPrefix(given, runTokenPrefix)
	if id = id[:min(len(id), len(uuid.Nil.String()))]; uuid.Validate(id) != nil {
		return "", nil
	}
	token, err := t.Token(ctx, id)
	if err != nil || !token.Equal(given) {
		return "", err
	}
	return id, nil
}

// ofRun serves a route to the agent of a run. Whether the run goes on is for the route to find out.
func (g Gate) ofRun(route Route, w http.ResponseWriter, r *http.Request) error {
	run, err := g.RunTokens.run(r.Context(), guard.Bearer(r))
	switch {
	case err != nil:
		return err
	case run == "":
		return g.RefuseToken(w, r, "the token is of no run")
	}
	g.Guard.Admit(r)
	body, err := exchange.ReadJSON(g.Guard, w, r, route.TooLarge)
	if err != nil {
		return err
	}
	return route.OfRun(w, r, body, run)
}

// RunEnded is the error of a request with the token of a run that has ended.
func RunEnded(w http.ResponseWriter) error {
	w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token", error_description="the run has ended"`)
	return exchange.Fail(http.StatusUnauthorized, "unauthorized", "the run of this token has ended: a token of X-Parley-Run-Token is good while its run lasts")
}
