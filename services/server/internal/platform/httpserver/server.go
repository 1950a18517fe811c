// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// Server is one listener with its handler. It speaks HTTP/1.1, and HTTP/2 when it
// terminates TLS itself.
type Server struct {
	name     string
	addr     string
	server   *http.Server
	listener net.Listener
	grace    time.Duration
	cert     atomic.Pointer[tls.Certificate]
}

// keepAlive finds out about peers that vanished.
const keepAlive = 15 * time.Second

// NewServer prepares a listener; Listen opens it. grace is how long running requests get
// when the context of Run ends.
func NewServer(name, addr string, c Config, handler http.Handler, grace time.Duration, log *slog.Logger) *Server {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	return &Server{name: name, addr: addr, grace: grace, server: &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: c.ReadHeaderTimeout,
		// Operations that move bytes extend these two.
		ReadTimeout:    c.RequestTimeout,
		WriteTimeout:   c.RequestTimeout + 5*time.Second,
		IdleTimeout:    c.IdleTimeout,
		MaxHeaderBytes: int(c.MaxHeaderBytes),
		Protocols:      &protocols,
		ErrorLog:       slog.NewLogLogger(log.With("component", "httpserver", "listener", name).Handler(), slog.LevelDebug),
	}}
}

// SetCertificate turns on TLS, or replaces the pair while the server runs. The pair that is
// in use stays when the new one does not fit together.
func (s *Server) SetCertificate(certificatePEM, keyPEM []byte) error {
	pair, err := tls.X509KeyPair(certificatePEM, keyPEM)
	if err != nil {
		// The text of the parser may describe the key, so it is not passed on.
		return errors.New("certificate and key do not fit together or cannot be read")
	}
	if s.cert.Swap(&pair) == nil && s.listener == nil {
		s.server.Protocols.SetHTTP2(true)
		s.server.TLSConfig = &tls.Config{
			MinVersion:     tls.VersionTLS12,
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.cert.Load(), nil },
		}
	}
	return nil
}

// Listen opens the port, so that a taken one fails the start.
func (s *Server) Listen(ctx context.Context) error {
	l, err := (&net.ListenConfig{KeepAlive: keepAlive}).Listen(ctx, "tcp", s.addr)
	if err != nil {
		return fmt.Errorf("listen for %s: %w", s.name, err)
	}
	s.listener = l
	return nil
}

// Addr is the address that was opened, with the port that was chosen for port 0.
func (s *Server) Addr() string {
	if s.listener == nil {
		return s.addr
	}
	return s.listener.Addr().String()
}

// Run serves until the context ends and then gives running requests their grace. It
// returns an error when the listener fails or requests had to be cut off.
func (s *Server) Run(ctx context.Context) error {
	if s.listener == nil {
		return errors.New("the listener is not open")
	}
	failed := make(chan error, 1)
	go func() {
		if s.server.TLSConfig != nil {
			failed <- s.server.ServeTLS(s.listener, "", "")
			return
		}
		failed <- s.server.Serve(s.listener)
	}()
	select {
	case err := <-failed:
		return fmt.Errorf("serve %s: %w", s.name, err)
	case <-ctx.Done():
	}
	graceCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.grace)
	defer cancel()
	err := s.server.Shutdown(graceCtx)
	if err != nil {
		err = errors.Join(fmt.Errorf("requests were cut off: %w", err), s.server.Close())
	}
	<-failed //nolint:errcheck // It only says that the listener was closed.
	return err
}
