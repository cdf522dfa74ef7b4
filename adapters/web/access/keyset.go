package access

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"parley/adapters/httpcall"
)

const (
	// keysAge is the age of a key set at which it is read again; keysEnd, the age at which it is not
	// trusted any more because the issuer gives no newer one.
	keysAge, keysEnd = time.Hour, 24 * time.Hour
	// keysPause is the least time between two reads of a key set, so that tokens with unknown keys cause
	// no flood of requests.
	keysPause = 10 * time.Second
	// keysTimeout bounds one read, maxKeysBytes its answer, and maxKeys the keys of a set.
	keysTimeout, maxKeysBytes, maxKeys = 5 * time.Second, 256 << 10, 100
	// minRSA and maxRSA bound the lengths of RSA keys, in bits. RFC 7518, section 3.3, requires the first.
	// https://www.rfc-editor.org/rfc/rfc7518#section-3.3
	minRSA, maxRSA = 2048, 8192
)

// errNoKeys means that the keys of an issuer are not known.
var errNoKeys = errors.New("the keys of the token's issuer cannot be read now; send the request again")

// KeySets are the public keys of issuers of signed tokens, by the address of each set. They outlive a
// reload of the configuration.
type KeySets struct {
	now   func() time.Time
	fault func(error)
	mu    sync.Mutex
	of    map[string]*keySet
}

// NewKeySets returns no keys. fault gets the error of each failed read.
func NewKeySets(now func() time.Time, fault func(error)) *KeySets {
	return &KeySets{now: now, fault: fault, of: map[string]*keySet{}}
}

// keySet are the keys at an address.
type keySet struct {
	address string
	reading chan struct{} // has room for the one caller that reads
	mu      sync.Mutex
	keys    []jose.JSONWebKey
	prints  map[string]bool // the thumbprints of keys
	read    time.Time       // of the keys; zero: never
	tried   time.Time
}

func (k *KeySets) set(address string) *keySet {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.of[address]
	if s == nil {
		s = &keySet{address: address, reading: make(chan struct{}, 1)}
		k.of[address] = s
	}
	return s
}

// find returns the key of a set that fits a token. It reads the set if it is old, or if no key fits: the
// issuer may have replaced one under the same id. The key is nil if none fits. The error is errNoKeys, or
// that of ctx.
func (k *KeySets) find(ctx context.Context, address string, fits func(*jose.JSONWebKey) bool) (*jose.JSONWebKey, error) {
	s := k.set(address)
	found, old := s.look(fits, k.now())
	switch {
	case found == nil: // the token waits for the read
		select {
		case s.reading <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	case old:
		select {
		case s.reading <- struct{}{}:
		default: // another caller reads, and this one has its key
			return found, nil
		}
	default:
		return found, nil
	}
	defer func() { <-s.reading }()
	if err := s.refresh(ctx, k.now()); err != nil {
		k.fault(err)
	}
	found, _ = s.look(fits, k.now())
	if found == nil && !s.isKnown(k.now()) {
		return nil, errNoKeys
	}
	return found, nil
}

// has reports whether a set has the key with a thumbprint, or was not read yet.
func (k *KeySets) has(address, thumbprint string) bool {
	s := k.set(address)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.read.IsZero() || s.prints[thumbprint]
}

func (s *keySet) isKnown(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.read.IsZero() && now.Sub(s.read) < keysEnd
}

// look returns the key for a token, and whether the set should be read again.
func (s *keySet) look(fits func(*jose.JSONWebKey) bool, now time.Time) (found *jose.JSONWebKey, old bool) {
	s.mu.Lock()
	keys, read, tried := s.keys, s.read, s.tried
	s.mu.Unlock()
	if read.IsZero() || now.Sub(read) >= keysEnd {
		return nil, true
	}
	if at := slices.IndexFunc(keys, func(key jose.JSONWebKey) bool { return fits(&key) }); at >= 0 {
		found = &keys[at]
	}
	return found, now.Sub(read) >= keysAge && now.Sub(tried) >= keysPause
}

// refresh reads the set unless it was read a moment ago. Only one caller may be in it.
func (s *keySet) refresh(ctx context.Context, now time.Time) error {
	s.mu.Lock()
	early := !s.tried.IsZero() && now.Sub(s.tried) < keysPause
	if !early {
		s.tried = now
	}
	s.mu.Unlock()
	if early {
		return nil
	}
	keys, err := readKeys(context.WithoutCancel(ctx), s.address) // other callers wait for them too
	if err != nil {
		return fmt.Errorf("read the keys at jwks_url: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys, s.prints, s.read = keys, map[string]bool{}, now
	for i := range keys {
		s.prints[thumbprintOf(&keys[i])] = true
	}
	return nil
}

// errBadKeys means that an address has no key set that we can use.
type errBadKeys string

// Error returns the fault.
func (e errBadKeys) Error() string { return string(e) }

// keysClient follows no redirect: the configured address must have the keys.
var keysClient = &http.Client{Timeout: keysTimeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// readKeys reads the keys at an address that can verify signatures. Keys of another use or kind are left
// out. The error is errBadKeys if the answer is wrong.
func readKeys(ctx context.Context, address string) (keys []jose.JSONWebKey, err error) {
	ctx, cancel := context.WithTimeout(ctx, keysTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, errBadKeys("the address is not valid")
	}
	request.Header.Set("Accept", "application/json")
	response, err := keysClient.Do(request)
	if err != nil {
		return nil, httpcall.WithoutURL(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, errBadKeys("the issuer answered " + response.Status)
	}
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxKeysBytes+1))
	if err != nil {
		return nil, httpcall.WithoutURL(err)
	}
	var set struct{ Keys []json.RawMessage }
	if len(raw) > maxKeysBytes || json.Unmarshal(raw, &set) != nil || len(set.Keys) > maxKeys {
		return nil, errBadKeys(fmt.Sprintf("the answer is not a JSON Web Key Set of at most %d keys and %d KiB", maxKeys, maxKeysBytes>>10))
	}
	for _, one := range set.Keys {
		var key jose.JSONWebKey
		if json.Unmarshal(one, &key) == nil && verifies(&key) {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil, errBadKeys("the set has no public key for signatures: RSA of at least 2048 bits, EC or Ed25519")
	}
	return keys, nil
}

// verifies reports whether a key can verify signatures.
func verifies(key *jose.JSONWebKey) bool {
	if !key.Valid() || !key.IsPublic() || key.Use != "" && key.Use != "sig" {
		return false
	}
	switch public := key.Key.(type) {
	case *rsa.PublicKey:
		return public.N.BitLen() >= minRSA && public.N.BitLen() <= maxRSA
	case *ecdsa.PublicKey, ed25519.PublicKey:
		return true
	}
	return false // a shared secret is no public key
}
