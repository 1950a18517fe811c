// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"testing"
	"time"
)

func testConfig() Config {
	return Config{ReadHeaderTimeout: time.Second, RequestTimeout: 5 * time.Second, IdleTimeout: time.Second, MaxHeaderBytes: 8192}
}

func TestAServerFinishesRunningRequests(t *testing.T) {
	inside, release := make(chan struct{}), make(chan struct{})
	s := NewServer("public", "127.0.0.1:0", testConfig(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(inside)
		<-release
		_, _ = io.WriteString(w, "done")
	}), 5*time.Second, slog.New(slog.DiscardHandler))
	if err := s.Listen(context.Background()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended, answer := make(chan error, 1), make(chan string, 1)
	go func() { ended <- s.Run(ctx) }()
	go func() {
		res, err := http.Get("http://" + s.Addr())
		if err != nil {
			answer <- err.Error()
			return
		}
		defer func() { _ = res.Body.Close() }()
		text, _ := io.ReadAll(res.Body)
		answer <- string(text)
	}()
	<-inside
	cancel()
	close(release)
	if got := <-answer; got != "done" {
		t.Errorf("answer %q", got)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestATakenPortFailsTheStart(t *testing.T) {
	a := NewServer("a", "127.0.0.1:0", testConfig(), http.NotFoundHandler(), time.Second, slog.New(slog.DiscardHandler))
	if err := a.Listen(context.Background()); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.listener.Close() }()
	if err := NewServer("b", a.Addr(), testConfig(), http.NotFoundHandler(), time.Second, slog.New(slog.DiscardHandler)).Listen(context.Background()); err == nil {
		t.Error("opened twice")
	}
}

func pair(t *testing.T, name string) (certificate, key []byte, pool *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{name}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM(certificate)
	return certificate, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}), pool
}

func TestTLSWithARotatedPair(t *testing.T) {
	s := NewServer("public", "127.0.0.1:0", testConfig(), http.NotFoundHandler(), time.Second, slog.New(slog.DiscardHandler))
	certA, keyA, poolA := pair(t, "a.example")
	certB, keyB, poolB := pair(t, "b.example")
	if err := s.SetCertificate(certA, keyA); err != nil {
		t.Fatal(err)
	}
	if err := s.Listen(context.Background()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	dial := func(pool *x509.CertPool, name string) error {
		c, err := tls.Dial("tcp", s.Addr(), &tls.Config{RootCAs: pool, ServerName: name, NextProtos: []string{"h2"}})
		if err != nil {
			return err
		}
		if c.ConnectionState().NegotiatedProtocol != "h2" {
			t.Error("no HTTP/2 over TLS")
		}
		return c.Close()
	}
	if err := dial(poolA, "a.example"); err != nil {
		t.Error(err)
	}
	if err := s.SetCertificate(certB, keyA); err == nil {
		t.Error("a pair that does not fit was taken")
	}
	if err := s.SetCertificate(certB, keyB); err != nil {
		t.Fatal(err)
	}
	if err := dial(poolB, "b.example"); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
