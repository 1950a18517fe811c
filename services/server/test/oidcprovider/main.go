// SPDX-License-Identifier: Apache-2.0

// Command oidcprovider is an OpenID provider for tests and for trying things out by hand: it
// has a few made-up people, signs real tokens, insists on PKCE and single use of codes, and
// can be told to misbehave. Never point an installation that matters at it: whoever reaches
// it may be anybody.
//
//	go run ./test/oidcprovider -listen 127.0.0.1:9400
//
// It speaks plain HTTP, so the server needs an entry in egress.allowed_hosts. With a
// browser, /authorize shows its people as buttons; a test adds the parameter "person". POST
// /control replaces its behaviour (see behaviour), POST /control/rotate its keys.
//
// It shares no code with the server it signs in to, so that a fault in reading a token is
// not hidden by the same fault in writing one.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:9400", "address to listen on; port 0 picks one")
	client := flag.String("client", "bothy", "client ID")
	secret := flag.String("secret", "a-client-secret", "client secret")
	flag.Parse()
	if err := run(*listen, *client, *secret); err != nil {
		fmt.Fprintln(os.Stderr, "oidcprovider:", err)
		os.Exit(1)
	}
}

func run(listen, client, secret string) error {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	p, err := newProvider("http://"+l.Addr().String(), client, secret)
	if err != nil {
		return err
	}
	// The one line on standard output tells a parent process where to find it.
	fmt.Println(p.issuer)
	server := &http.Server{Handler: p.routes(), ReadHeaderTimeout: 5 * time.Second}
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}
