// SPDX-License-Identifier: Apache-2.0

package webassets

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

func build() fstest.MapFS {
	return fstest.MapFS{
		"index.html":            {Data: []byte("chat")},
		"index.html.br":         {Data: []byte("BR")},
		"console/index.html":    {Data: []byte("console")},
		"assets/app.1234.js":    {Data: []byte("plain script")},
		"assets/app.1234.js.gz": {Data: []byte("GZ")},
		"sw.js":                 {Data: []byte("worker")},
		"manifest.webmanifest":  {Data: []byte("{}")},
	}
}

func setup(t *testing.T, o Options) *Handler {
	t.Helper()
	if o.PublicURL == "" {
		o.PublicURL = "https://chat.example.org"
	}
	h, err := newHandler(build(), o)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func get(h http.Handler, method, path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	w.Header().Set("Content-Security-Policy", "default-src 'none'")
	h.ServeHTTP(w, r)
	return w
}

func TestPathsAnswerFilesOrThePageOfTheirRoot(t *testing.T) {
	h := setup(t, Options{})
	for path, want := range map[string]string{
		"/": "chat", "/index.html": "chat", "/channels/x": "chat", "/favicon.ico": "chat", "/console": "console", "/console/": "console",
		"/console/users/5": "console", "/consoles": "chat", "/sw.js": "worker", "/assets/app.1234.js": "plain script",
		"/../../etc/passwd": "chat", "/assets/../sw.js": "worker",
	} {
		if w := get(h, "GET", path); w.Code != 200 || w.Body.String() != want {
			t.Errorf("%s: %d %q, want %q", path, w.Code, w.Body, want)
		}
	}
	for _, path := range []string{"/assets/none.js", "/assets/", "/assets"} {
		if w := get(h, "GET", path); w.Code != 404 || !strings.Contains(w.Body.String(), "not_found") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	if w := get(h, "POST", "/"); w.Code != 405 || w.Header().Get("Allow") != "GET, HEAD" {
		t.Errorf("POST: %d", w.Code)
	}
	if w := get(h, "HEAD", "/"); w.Code != 200 || w.Body.Len() != 0 {
		t.Errorf("HEAD: %d %q", w.Code, w.Body)
	}
}

func TestCachingAndCompressedForms(t *testing.T) {
	h := setup(t, Options{})
	script := get(h, "GET", "/assets/app.1234.js", "Accept-Encoding", "gzip;q=0.5, br")
	if script.Body.String() != "GZ" || script.Header().Get("Content-Encoding") != "gzip" || script.Header().Get("Vary") != "Accept-Encoding" ||
		script.Header().Get("Cache-Control") != "public, max-age=31536000, immutable" || script.Header().Get("Content-Type") != "text/javascript; charset=utf-8" {
		t.Errorf("%v %q", script.Header(), script.Body)
	}
	page := get(h, "GET", "/", "Accept-Encoding", "gzip, br")
	if page.Body.String() != "BR" || page.Header().Get("Cache-Control") != "no-cache" {
		t.Errorf("%v %q", page.Header(), page.Body)
	}
	if w := get(h, "GET", "/", "Accept-Encoding", "br;q=0"); w.Body.String() != "chat" || w.Header().Get("Content-Encoding") != "" {
		t.Errorf("%v %q", w.Header(), w.Body)
	}
	if w := get(h, "GET", "/", "Accept-Encoding", "br", "If-None-Match", page.Header().Get("ETag")); w.Code != 304 {
		t.Errorf("same content: %d", w.Code)
	}
	if w := get(h, "GET", "/", "If-None-Match", page.Header().Get("ETag")); w.Code != 200 {
		t.Errorf("another form has the same tag: %d", w.Code)
	}
	if w := get(h, "GET", "/sw.js", "Range", "bytes=0-2"); w.Code != 206 || w.Body.String() != "wor" {
		t.Errorf("range: %d %q", w.Code, w.Body)
	}
	if w := get(h, "GET", "/index.html.br"); w.Body.String() != "chat" {
		t.Errorf("the compressed form has an address of its own: %q", w.Body)
	}
}

func TestEveryFileCarriesThePolicy(t *testing.T) {
	h := setup(t, Options{DownloadOrigin: "https://files.example.org"})
	want := "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: https://files.example.org; media-src 'self' blob: https://files.example.org; font-src 'self'; connect-src 'self' wss://chat.example.org; worker-src 'self'; manifest-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'; object-src 'none'; require-trusted-types-for 'script'; trusted-types bothy; report-to csp; report-uri /api/v1/csp-reports"
	for _, path := range []string{"/", "/assets/app.1234.js", "/sw.js"} {
		w := get(h, "GET", path)
		if got := w.Header()["Content-Security-Policy"]; len(got) != 1 || got[0] != want {
			t.Errorf("%s: %q", path, got)
		}
		if w.Header().Get("Cross-Origin-Opener-Policy") != "same-origin" || w.Header().Get("Permissions-Policy") == "" {
			t.Errorf("%s: %v", path, w.Header())
		}
	}
	reporting := get(setup(t, Options{ReportOnly: true, PublicURL: "http://localhost:8080"}), "GET", "/").Header()
	if reporting.Get("Content-Security-Policy") != "" || !strings.Contains(reporting.Get("Content-Security-Policy-Report-Only"), "ws://localhost:8080;") {
		t.Errorf("%v", reporting)
	}
}

func TestTheManifestComesFromTheBranding(t *testing.T) {
	h := setup(t, Options{Manifest: func(context.Context) ([]byte, error) { return []byte(`{"name":"Hut"}`), nil }})
	w := get(h, "GET", "/manifest.webmanifest")
	if w.Body.String() != `{"name":"Hut"}` || w.Header().Get("Content-Type") != "application/manifest+json" {
		t.Errorf("%v %s", w.Header(), w.Body)
	}
}

func TestAReplacingFolderMustBeAWholeBuild(t *testing.T) {
	write := func(dir, name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	write(dir, "index.html", "other")
	if _, err := New(Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), "console/index.html") {
		t.Errorf("missing entry: %v", err)
	}
	write(dir, "console/index.html", "other console")
	h, err := New(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if w := get(h, "GET", "/"); w.Body.String() != "other" {
		t.Errorf("%q", w.Body)
	}
	write(dir, "build.json", `{"api_version":"v2"}`)
	if _, err := New(Options{Dir: dir}); err == nil {
		t.Error("a build for another API was taken")
	}
	write(dir, "build.json", `{"api_version":"v1"}`)
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if _, err := New(Options{Dir: dir}); err == nil {
		t.Error("a link was taken")
	}
	if _, err := New(Options{Dir: filepath.Join(dir, "none")}); err == nil {
		t.Error("a missing folder was taken")
	}
}

func TestTheBinaryAlwaysHasAPage(t *testing.T) {
	h, err := New(Options{PublicURL: "https://x.example"})
	if err != nil {
		t.Fatal(err)
	}
	if w := get(h, "GET", "/anything"); w.Code != 200 || !strings.Contains(w.Header().Get("Content-Type"), "text/html") {
		t.Errorf("%d %v", w.Code, w.Header())
	}
}

func TestTheReferenceIsServedBesideAnyClient(t *testing.T) {
	h := setup(t, Options{})
	start := get(h, "GET", "/reference/")
	if start.Code != 200 || !strings.Contains(start.Body.String(), "API reference") || start.Header().Get("Content-Type") != "text/html; charset=utf-8" ||
		!strings.Contains(start.Header().Get("Content-Security-Policy"), "default-src 'none'") {
		t.Errorf("%d %v", start.Code, start.Header())
	}
	for path, contentType := range map[string]string{
		"/reference/gateway.html": "text/html; charset=utf-8", "/reference/reference.css": "text/css; charset=utf-8",
		"/reference/module-messaging.html": "text/html; charset=utf-8",
	} {
		if w := get(h, "GET", path); w.Code != 200 || w.Header().Get("Content-Type") != contentType {
			t.Errorf("%s: %d %v", path, w.Code, w.Header())
		}
	}
	if w := get(h, "GET", "/reference"); w.Code != 308 || w.Header().Get("Location") != "/reference/" {
		t.Errorf("without a slash: %d %v", w.Code, w.Header())
	}
	if w := get(h, "GET", "/reference/none.html"); w.Code != 404 {
		t.Errorf("a missing page: %d", w.Code)
	}
	if w := get(h, "GET", "/references"); w.Body.String() != "chat" {
		t.Errorf("a place of the client: %q", w.Body)
	}
}
