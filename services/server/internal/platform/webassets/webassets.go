// SPDX-License-Identifier: Apache-2.0

// Package webassets serves the web client: files of a build that is embedded in the binary,
// or of a folder that replaces it.
//
// All files are read when the server starts and served from memory, so nothing outside the
// build can be reached and a folder that changes meanwhile changes nothing. Files below
// /assets/ have names with a hash of their content and never change; a missing one is 404.
// Every other path that names no file is a place inside the client and answers the page of
// its root. Pages need no session and are served before the setup and during maintenance.
//
// Below /reference/ lies the API reference of this server. It is no part of the client: a build
// that replaces the client keeps it, and a missing page there is 404.
package webassets

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path"
	"strings"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/platform/httpserver"
)

//go:embed all:dist
var embedded embed.FS

//go:embed placeholder
var placeholder embed.FS

//go:embed reference
var reference embed.FS

const (
	page        = "index.html"
	consolePage = "console/index.html"
	// apiVersion is what build.json of a replacing build must name.
	apiVersion = "v1"
)

// Options say what is served and with which policy.
type Options struct {
	// Dir replaces the embedded build; empty keeps it.
	Dir string
	// PublicURL is the origin of the instance; its host may be reached by WebSocket.
	PublicURL string
	// DownloadOrigin is a further origin that pictures and media may come from; empty for none.
	DownloadOrigin string
	// ReportOnly sends the policy for reports alone.
	ReportOnly bool
	// Manifest makes the web app manifest from the branding of the instance. Without it a
	// file of the build is served.
	Manifest func(ctx context.Context) ([]byte, error)
}

// Handler serves the files. It implements http.Handler.
type Handler struct {
	files    map[string]*file
	headers  http.Header
	manifest func(ctx context.Context) ([]byte, error)
}

// referenceRoot is where the API reference lies, among the files and below the address.
const referenceRoot = "reference"

type file struct {
	contentType string
	immutable   bool
	plain       variant
	brotli      *variant
	gzip        *variant
}

type variant struct {
	content []byte
	etag    string
}

const manifestPath = "manifest.webmanifest"

// New reads the build. It fails when a replacing folder lacks an entry page, holds anything
// but plain files, or was built for another version of the API.
func New(o Options) (*Handler, error) {
	build, err := source(o.Dir)
	if err != nil {
		return nil, err
	}
	return newHandler(build, o)
}

func source(dir string) (fs.FS, error) {
	if dir != "" {
		root, err := os.OpenRoot(dir)
		if err != nil {
			return nil, errors.New("console.assets_dir cannot be opened")
		}
		return root.FS(), nil
	}
	build, err := fs.Sub(embedded, "dist")
	if err != nil {
		return nil, fmt.Errorf("open embedded web client: %w", err)
	}
	if _, err := fs.Stat(build, page); err != nil {
		return fs.Sub(placeholder, "placeholder")
	}
	return build, nil
}

func newHandler(build fs.FS, o Options) (*Handler, error) {
	h := &Handler{files: map[string]*file{}, headers: headers(o), manifest: o.Manifest}
	raw := map[string][]byte{}
	if err := readFiles(build, ".", raw); err != nil {
		return nil, fmt.Errorf("read web client: %w", err)
	}
	if err := readFiles(reference, referenceRoot, raw); err != nil {
		return nil, fmt.Errorf("read API reference: %w", err)
	}
	for _, name := range []string{page, consolePage} {
		if raw[name] == nil {
			return nil, fmt.Errorf("the web client lacks %s", name)
		}
	}
	if err := checkVersion(raw["build.json"]); err != nil {
		return nil, err
	}
	for name, content := range raw {
		if isCompressedForm(name, raw) {
			continue
		}
		h.files[name] = &file{
			contentType: contentType(name), immutable: strings.HasPrefix(name, "assets/"), plain: newVariant(content, ""),
			brotli: optional(raw[name+".br"], "-br"), gzip: optional(raw[name+".gz"], "-gz"),
		}
	}
	return h, nil
}

// readFiles adds the files below a folder to raw.
func readFiles(files fs.FS, root string, raw map[string][]byte) error {
	return fs.WalkDir(files, root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || d.IsDir():
			return err
		case !d.Type().IsRegular():
			return fmt.Errorf("%s is no plain file", name)
		case path.Base(name) == ".gitignore":
			return nil
		}
		raw[name], err = fs.ReadFile(files, name)
		return err
	})
}

// checkVersion compares the version of the API that a build was made for. A build without
// the file says nothing about it.
func checkVersion(text []byte) error {
	if text == nil {
		return nil
	}
	var build struct {
		APIVersion string `json:"api_version"`
	}
	if err := json.Unmarshal(text, &build); err != nil || build.APIVersion != apiVersion {
		return errors.New("build.json of the web client does not name API version " + apiVersion)
	}
	return nil
}

// isCompressedForm reports whether a file is the compressed form of another one.
func isCompressedForm(name string, raw map[string][]byte) bool {
	for _, suffix := range []string{".br", ".gz"} {
		if base, found := strings.CutSuffix(name, suffix); found && raw[base] != nil {
			return true
		}
	}
	return false
}

func newVariant(content []byte, suffix string) variant {
	sum := sha256.Sum256(content)
	return variant{content: content, etag: `"` + hex.EncodeToString(sum[:12]) + suffix + `"`}
}

func optional(content []byte, suffix string) *variant {
	if content == nil {
		return nil
	}
	v := newVariant(content, suffix)
	return &v
}

// contentType does not ask the tables of the machine, whose answers differ.
func contentType(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".js", ".mjs":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".json", ".map":
		return "application/json"
	case ".webmanifest":
		return "application/manifest+json"
	case ".svg":
		return "image/svg+xml"
	case ".woff2":
		return "font/woff2"
	case ".txt":
		return "text/plain; charset=utf-8"
	case ".wasm":
		return "application/wasm"
	case ".png", ".jpg", ".jpeg", ".gif", ".webp", ".ico", ".avif":
		if t := mime.TypeByExtension(path.Ext(name)); t != "" {
			return t
		}
	}
	return "application/octet-stream"
}

// headers are sent with every file, because a worker obeys the policy of its own file.
func headers(o Options) http.Header {
	policy := Policy(o.PublicURL, o.DownloadOrigin)
	name := "Content-Security-Policy"
	if o.ReportOnly {
		name = "Content-Security-Policy-Report-Only"
	}
	return http.Header{
		name:                         {policy},
		"Reporting-Endpoints":        {`csp="/api/v1/csp-reports"`},
		"Cross-Origin-Opener-Policy": {"same-origin"},
		"Referrer-Policy":            {"no-referrer"},
		"X-Content-Type-Options":     {"nosniff"},
		"Permissions-Policy":         {"microphone=(self), camera=(self), geolocation=(), payment=(), usb=()"},
	}
}

// Policy is the content security policy of the pages.
func Policy(publicURL, downloadOrigin string) string {
	connect := "'self'"
	if u, err := url.Parse(publicURL); err == nil && u.Host != "" {
		scheme := "wss"
		if u.Scheme == "http" {
			scheme = "ws"
		}
		connect += " " + scheme + "://" + u.Host
	}
	media := "'self' blob:"
	if downloadOrigin != "" {
		media += " " + downloadOrigin
	}
	return strings.Join([]string{
		"default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src " + media, "media-src " + media, "font-src 'self'",
		"connect-src " + connect, "worker-src 'self'", "manifest-src 'self'", "form-action 'self'", "frame-ancestors 'none'",
		"base-uri 'none'", "object-src 'none'", "require-trusted-types-for 'script'", "trusted-types bothy",
		"report-to csp", "report-uri /api/v1/csp-reports",
	}, "; ")
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		httpserver.WriteError(w, r, errs.New(errs.CodeMethodNotAllowed, "This path does not take this method; see the header Allow."))
		return
	}
	name := strings.TrimPrefix(path.Clean("/"+r.URL.Path), "/")
	if name == manifestPath && h.manifest != nil {
		h.serveManifest(w, r)
		return
	}
	if name == referenceRoot {
		// The pages link to each other relative to the folder.
		if !strings.HasSuffix(r.URL.Path, "/") {
			http.Redirect(w, r, "/"+referenceRoot+"/", http.StatusPermanentRedirect)
			return
		}
		name += "/" + page
	}
	f := h.files[name]
	if f == nil {
		if isBelow(name, "assets") || isBelow(name, referenceRoot) || probed[name] {
			httpserver.WriteError(w, r, errs.NotFound())
			return
		}
		f = h.files[pageOf(name)]
	}
	h.setHeaders(w.Header())
	serve(w, r, f)
}

// probed are the paths that monitoring asks for. What it looks for lies elsewhere, and a page
// would look like an answer.
var probed = map[string]bool{"metrics": true, "healthz": true, "readyz": true}

func pageOf(name string) string {
	if isBelow(name, "console") {
		return consolePage
	}
	return page
}

// isBelow reports whether a name is a folder or lies in it.
func isBelow(name, folder string) bool {
	rest, found := strings.CutPrefix(name, folder)
	return found && (rest == "" || rest[0] == '/')
}

func (h *Handler) setHeaders(header http.Header) {
	// The policy of the API forbids everything and would win over one that only reports.
	header.Del("Content-Security-Policy")
	for name, values := range h.headers {
		header[name] = values
	}
}

func (h *Handler) serveManifest(w http.ResponseWriter, r *http.Request) {
	content, err := h.manifest(r.Context())
	if err != nil {
		httpserver.WriteError(w, r, err)
		return
	}
	h.setHeaders(w.Header())
	serve(w, r, &file{contentType: contentType(manifestPath), plain: newVariant(content, "")})
}

func serve(w http.ResponseWriter, r *http.Request, f *file) {
	header := w.Header()
	v, encoding := f.choose(r.Header.Get("Accept-Encoding"))
	if f.brotli != nil || f.gzip != nil {
		header.Add("Vary", "Accept-Encoding")
	}
	if encoding != "" {
		header.Set("Content-Encoding", encoding)
	}
	header.Set("Content-Type", f.contentType)
	header.Set("ETag", v.etag)
	header.Set("Cache-Control", "no-cache")
	if f.immutable {
		header.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(v.content))
}

// choose picks the smallest form that the client takes.
func (f *file) choose(accepted string) (v variant, encoding string) {
	if f.brotli != nil && accepts(accepted, "br") {
		return *f.brotli, "br"
	}
	if f.gzip != nil && accepts(accepted, "gzip") {
		return *f.gzip, "gzip"
	}
	return f.plain, ""
}

func accepts(header, coding string) bool {
	for part := range strings.SplitSeq(header, ",") {
		name, params, _ := strings.Cut(part, ";")
		if strings.EqualFold(strings.TrimSpace(name), coding) {
			q := strings.ReplaceAll(strings.ToLower(params), " ", "")
			return q != "q=0" && q != "q=0.0" && q != "q=0.00" && q != "q=0.000"
		}
	}
	return false
}
