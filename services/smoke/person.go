// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	bothy "github.com/OWNER/bothy/sdk/go"
	"github.com/OWNER/bothy/sdk/go/api"
	"github.com/OWNER/bothy/sdk/go/gateway"
)

// person is somebody with a device: calls the API and follows the gateway.
type person struct {
	*bothy.Client
	id      string
	session *bothy.Session
	key     *bothy.Key

	link  *gateway.Link
	stop  func()
	ended chan error

	mu        sync.Mutex
	events    []gateway.Event
	changed   chan struct{}
	connected int
}

var device = api.DeviceInfo{Name: "Smoke", Platform: api.PlatformLinux, Client: api.ClientKindCli, ClientVersion: "1.0.0"}

// enrol redeems a code on a new device and begins to follow.
func enrol(ctx context.Context, url, code, password string) (*person, error) {
	c, err := bothy.New(url, bothy.WithUserAgent("smoke/1"))
	if err != nil {
		return nil, err
	}
	key, err := bothy.NewKey()
	if err != nil {
		return nil, err
	}
	session, err := c.LoginWithCode(ctx, key, device, code, password)
	if err != nil {
		return nil, err
	}
	p := &person{Client: c.As(session), session: session, key: key, id: session.State().PrincipalID, changed: make(chan struct{}), ended: make(chan error, 1)}
	return p, p.follow()
}

// follow loads a snapshot and then takes every event behind it.
func (p *person) follow() error {
	link, err := gateway.New(gateway.Config{
		Client: p.Client, Program: gateway.Program{Name: "smoke", Version: "1"},
		Handle:    func(_ context.Context, e gateway.Event) error { p.note(e); return nil },
		Ephemeral: func(_ context.Context, e gateway.Event) { p.note(e) },
		Connected: func(gateway.Connection) { p.mu.Lock(); p.connected++; p.mu.Unlock(); p.wake() },
		Resync: func(ctx context.Context) (gateway.Position, error) {
			first, err := p.Snapshot(ctx, "")
			if err != nil {
				return gateway.Position{}, err
			}
			for next := first.NextCursor; next != nil; {
				page, err := p.Snapshot(ctx, *next)
				if err != nil {
					return gateway.Position{}, err
				}
				next = page.NextCursor
			}
			return gateway.Position{SyncEpoch: first.SyncEpoch, Cursor: first.HeadSeq}, nil
		},
	})
	if err != nil {
		return err
	}
	p.link = link
	ctx, cancel := context.WithCancel(context.Background())
	p.stop = cancel
	go func() { p.ended <- link.Run(ctx) }()
	return nil
}

func (p *person) note(e gateway.Event) {
	p.mu.Lock()
	p.events = append(p.events, e)
	p.mu.Unlock()
	p.wake()
}

func (p *person) wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.changed)
	p.changed = make(chan struct{})
}

// until waits for a condition that events or connections bring about.
func (p *person) until(ctx context.Context, what string, condition func() bool) error {
	for {
		p.mu.Lock()
		changed := p.changed
		ok := condition()
		p.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case err := <-p.ended:
			return fmt.Errorf("%s did not happen, the gateway ended: %w", what, err)
		case <-ctx.Done():
			return fmt.Errorf("%s did not happen", what)
		}
	}
}

// online waits for the nth connection.
func (p *person) online(ctx context.Context, n int) error {
	return p.until(ctx, "a connection to the gateway", func() bool { return p.connected >= n })
}

func (p *person) connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.connected
}

// await waits for an event of the type that fits, among those that came and those to come.
func await[T any](ctx context.Context, p *person, eventType string, fits func(*T) bool) (*T, error) {
	var found *T
	next := 0
	var fault error
	err := p.until(ctx, "event "+eventType, func() bool {
		for ; next < len(p.events); next++ {
			if p.events[next].Type != eventType {
				continue
			}
			data, err := gateway.Data[T](p.events[next])
			if err != nil {
				fault = err
				return true
			}
			if fits(data) {
				found = data
				return true
			}
		}
		return false
	})
	return found, errors.Join(err, fault)
}

// seen counts the events of a type that fit.
func seen[T any](p *person, eventType string, fits func(*T) bool) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, e := range p.events {
		if e.Type != eventType {
			continue
		}
		if data, err := gateway.Data[T](e); err == nil && fits(data) {
			n++
		}
	}
	return n
}
