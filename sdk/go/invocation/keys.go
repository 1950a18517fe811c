// SPDX-License-Identifier: Apache-2.0

package invocation

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"encoding/base64"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/OWNER/bothy/sdk/go/api"
)

// Fetch gets the public keys of the instance, such as bothy.Client.JWKS.
type Fetch func(context.Context) (*api.JWKS, error)

const (
	// keysFresh is how long fetched keys are used without asking again.
	keysFresh = 5 * time.Minute
	// fetchPause is the least time between two fetches, so that unknown key names cause no flood.
	fetchPause = time.Minute
)

// keys caches the instance's keys.
type keys struct {
	fetch Fetch
	now   func() time.Time

	mu      sync.Mutex
	known   map[string]*ecdsa.PublicKey
	fetched time.Time
	tried   time.Time
}

// errKeysUnknown means that the key is not known and that it is too early to ask again.
var errKeysUnknown = errors.New("key unknown, keys were fetched a moment ago")

// key finds a key by its name. nil without an error means that the instance has no such key.
func (k *keys) key(ctx context.Context, name string) (*ecdsa.PublicKey, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	found := k.known[name]
	if found != nil && now.Sub(k.fetched) < keysFresh {
		return found, nil
	}
	if !k.tried.IsZero() && now.Sub(k.tried) < fetchPause {
		if found != nil {
			return found, nil
		}
		return nil, errKeysUnknown
	}
	k.tried = now
	set, err := k.fetch(ctx)
	switch {
	case err != nil && found != nil:
		return found, nil // the old key is better than none
	case err != nil:
		k.tried = time.Time{} // the client has waited by itself
		return nil, fmt.Errorf("fetch the keys of the instance: %w", err)
	}
	k.known, k.fetched = map[string]*ecdsa.PublicKey{}, now
	for _, j := range set.Keys {
		if public := publicKey(j); public != nil {
			k.known[j.Kid] = public
		}
	}
	return k.known[name], nil
}

// publicKey reads a P-256 key; keys of other kinds are none of ours.
func publicKey(j api.JWK) *ecdsa.PublicKey {
	const coordinate = 32
	if j.Kty != "EC" || j.Crv != "P-256" || (j.Alg != "" && j.Alg != algorithm) || j.Kid == "" || j.Y == nil {
		return nil
	}
	x, errX := base64.RawURLEncoding.DecodeString(j.X)
	y, errY := base64.RawURLEncoding.DecodeString(*j.Y)
	if errX != nil || errY != nil || len(x) != coordinate || len(y) != coordinate {
		return nil
	}
	const uncompressed = 4
	public, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), append(append([]byte{uncompressed}, x...), y...))
	if err != nil {
		return nil
	}
	return public
}
