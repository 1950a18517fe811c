// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/internal/wire"
	"github.com/OWNER/bothy/services/server/test/harness"
)

var correlation = regexp.MustCompile(`"correlation_id":"[^"]*"`)

// said is an answer without what differs between any two of them.
func said(r *harness.Response) []byte { return correlation.ReplaceAll(r.Body, nil) }

// guesser tries passwords from a device nobody knows. A flow takes four wrong ones and goes on.
type guesser struct {
	*harness.Client
	flow  string
	tries int
}

func (g *guesser) guess(t *testing.T, login string) (*harness.Response, time.Duration) {
	t.Helper()
	if g.tries%4 == 0 {
		g.flow = g.Call(t, "beginLogin", harness.Body{"driver": "local", "device": device}).OK(t).Str("flow_id")
	}
	g.tries++
	begin := time.Now()
	r := g.Call(t, "completeLogin", g.flow, harness.Body{"login": login, "password": "not the right one"})
	return r, time.Since(begin)
}

// Whoever guesses learns neither by words nor by time whether an account exists, before the
// account is locked and after.
func TestGuessingTellsNothing(t *testing.T) {
	const samples = 60
	s := harness.Start(t)
	ana := s.Person(t, "ana")
	known, unknown := &guesser{Client: newDevice(t, s)}, &guesser{Client: newDevice(t, s)}
	var times [2][]float64
	var words []byte
	attempts := []struct {
		by    *guesser
		login string
	}{{known, ana.Handle}, {unknown, "nobody-" + ana.Handle}}
	random := rand.New(rand.NewPCG(1, 2))
	for range samples {
		// Garbage of one hash is collected during another: a fixed order would be seen in the times.
		for _, i := range random.Perm(len(attempts)) {
			attempt := attempts[i]
			r, took := attempt.by.guess(t, attempt.login)
			r.Refused(t, "unauthenticated", "login_failed")
			if words == nil {
				words = said(r)
			}
			if !bytes.Equal(said(r), words) {
				t.Fatalf("%q answers %s, before it was %s", attempt.login, said(r), words)
			}
			times[i] = append(times[i], took.Seconds())
		}
	}
	if n := s.DB.Count(t, "SELECT failed_count FROM local_credentials WHERE principal_id = $1", ana.ID); n != 20 {
		t.Errorf("%d failures are counted: the samples do not reach the lock", n)
	}
	// At this distance chance alone separates two equal distributions once in ten thousand runs.
	if limit := 2.23 * math.Sqrt(2.0/samples); distance(times[0], times[1]) > limit {
		t.Errorf("known and unknown names differ in time by %.2f, more than %.2f", distance(times[0], times[1]), limit)
	}
}

// distance is that of Kolmogorov and Smirnov: how far two samples are apart at most.
func distance(a, b []float64) float64 {
	slices.Sort(a)
	slices.Sort(b)
	most, i, j := 0.0, 0, 0
	for i < len(a) && j < len(b) {
		if a[i] <= b[j] {
			i++
		} else {
			j++
		}
		most = max(most, math.Abs(float64(i)/float64(len(a))-float64(j)/float64(len(b))))
	}
	return most
}

// The throttle of names counts those that exist and those that do not alike.
func TestTheThrottleOfNamesTellsNothing(t *testing.T) {
	s := harness.Start(t, harness.WithConfig(func(c *wire.Config) {
		class := c.RateLimit.Classes["login_name"]
		class.Burst, class.PerMinute = 3, 1
	}))
	ana := s.Person(t, "ana")
	var words [2][]byte
	for i, login := range []string{ana.Handle, "nobody-" + ana.Handle} {
		g := &guesser{Client: newDevice(t, s)}
		for range 3 {
			r, _ := g.guess(t, login)
			r.Refused(t, "unauthenticated", "login_failed")
		}
		r, _ := g.guess(t, login)
		r.Refused(t, "rate_limited")
		words[i] = append(said(r), r.Header.Get("Retry-After")...)
	}
	if !bytes.Equal(words[0], words[1]) {
		t.Errorf("%s and %s", words[0], words[1])
	}
	// Her own device has a bucket of its own: nobody can use up hers.
	flow := ana.Call(t, "beginLogin", harness.Body{"driver": "local", "device": device}).OK(t).Str("flow_id")
	ana.Call(t, "completeLogin", flow, harness.Body{"login": ana.Handle, "password": ana.Password}).OK(t)
}

// A thousand wrong passwords do not keep a person out: not on a device of hers, and not with
// a passkey on a new one.
func TestGuessingLocksNobodyOut(t *testing.T) {
	s := harness.Start(t)
	ana := s.Person(t, "ana")
	a := authenticator(s)
	addPasskey(t, ana, a)
	g := &guesser{Client: newDevice(t, s)}
	for range 25 {
		r, _ := g.guess(t, ana.Handle)
		r.Refused(t, "unauthenticated", "login_failed")
	}
	correct := harness.Body{"login": ana.Handle, "password": ana.Password}
	fresh := newDevice(t, s)
	flow := fresh.Call(t, "beginLogin", harness.Body{"driver": "local", "device": device}).OK(t).Str("flow_id")
	fresh.Call(t, "completeLogin", flow, correct).Refused(t, "unauthenticated", "login_failed")
	begun := fresh.Call(t, "beginLogin", harness.Body{"driver": "passkey", "device": device}).OK(t)
	fresh.Call(t, "completeLogin", begun.Str("flow_id"), harness.Body{"passkey": a.Get(t, asked(t, begun))}).OK(t)
	flow = ana.Call(t, "beginLogin", harness.Body{"driver": "local", "device": device}).OK(t).Str("flow_id")
	ana.Call(t, "completeLogin", flow, correct).OK(t)
}
