// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"errors"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

type classes struct {
	Burst int `key:"burst" min:"1" max:"100"`
}

type sample struct {
	Role     string            `key:"server.role" default:"all" enum:"api,worker,all" doc:"The role."`
	Interval time.Duration     `key:"sync.log_poll_interval" default:"1s" min:"100ms" max:"30s" doc:"How often | the log is read."`
	Size     int64             `key:"http.max_json_body_bytes" default:"1MiB" type:"bytes" min:"64KiB" max:"16MiB"`
	Count    int               `key:"http.max_json_depth" default:"32" min:"8" max:"128"`
	Ratio    float64           `key:"telemetry.trace_sample_ratio" default:"0.1" min:"0" max:"1"`
	On       bool              `key:"web.client_metrics" default:"true"`
	URL      string            `key:"server.public_url" type:"origin"`
	Origins  []string          `key:"api.cors_allowed_origins" type:"origin"`
	Proxies  []netip.Prefix    `key:"server.trusted_proxies"`
	Before   []time.Duration   `key:"authz.expiry_reminder_before" default:"168h,24h"`
	Ref      string            `key:"database.password_ref" default:"file:<secrets.dir>/database_app_password" type:"ref"`
	Keys     string            `key:"secrets.signing_key_dir" type:"path" required:"true"`
	Map      map[string]string `key:"search.locale_map"`
	Hosts    []struct {
		Host string `json:"host"`
	} `key:"egress.allowed_hosts"`
	Listen  string              `key:"server.listen_addr" default:"127.0.0.1:8080" type:"address"`
	Classes map[string]*classes `prefix:"ratelimit.class"`
	Nested  struct {
		At string `key:"backup.at" default:"03:15" type:"clock"`
	}
}

const required = "BOTHY_SECRETS__SIGNING_KEY_DIR=/keys"

func schema() (*Schema, *sample) {
	c := &sample{Classes: map[string]*classes{"message": {Burst: 20}}}
	s := NewSchema()
	s.Bind("sample", c)
	return s, c
}

func load(t *testing.T, from Sources) (*sample, *Loaded) {
	t.Helper()
	s, c := schema()
	from.Environ = append(from.Environ, required)
	l, err := s.Load(from)
	if err != nil {
		t.Fatal(err)
	}
	return c, l
}

func TestDefaultsFillEveryType(t *testing.T) {
	c, _ := load(t, Sources{})
	if c.Role != "all" || c.Interval != time.Second || c.Size != 1<<20 || c.Count != 32 || c.Ratio != 0.1 || !c.On ||
		!reflect.DeepEqual(c.Before, []time.Duration{168 * time.Hour, 24 * time.Hour}) || c.Nested.At != "03:15" ||
		c.Keys != "/keys" || len(c.Origins) != 0 || c.Classes["message"].Burst != 20 {
		t.Errorf("%+v", c)
	}
}

func TestLaterSourcesWin(t *testing.T) {
	file := Sources{FileName: "/etc/bothy.yaml", File: []byte(`
server: {role: api, public_url: "https://a.example"}
sync:
  log_poll_interval: 2s
http.max_json_depth: 64
api:
  cors_allowed_origins: [https://a.example, "https://b.example:8443"]
server.trusted_proxies: [10.0.0.0/8, 192.0.2.1]
search: {locale_map: {de: german}}
egress: {allowed_hosts: [{host: a}]}
ratelimit: {class: {message: {burst: 30}}}
`)}
	c, l := load(t, file)
	if c.Role != "api" || c.Interval != 2*time.Second || c.Count != 64 || len(c.Origins) != 2 || c.Proxies[1].String() != "192.0.2.1/32" ||
		c.Map["de"] != "german" || c.Hosts[0].Host != "a" || c.Classes["message"].Burst != 30 {
		t.Errorf("file: %+v", c)
	}
	if l.Source("sync.log_poll_interval") != "file /etc/bothy.yaml" {
		t.Errorf("source %q", l.Source("sync.log_poll_interval"))
	}
	file.Environ = []string{"BOTHY_SYNC__LOG_POLL_INTERVAL=3s", "BOTHY_SERVER__ROLE=worker", "BOTHY_API__CORS_ALLOWED_ORIGINS=",
		`BOTHY_EGRESS__ALLOWED_HOSTS=[{"host":"b"},{"host":"c"}]`}
	file.Flags = map[string]string{"server.role": "all"}
	c, l = load(t, file)
	if c.Role != "all" || c.Interval != 3*time.Second || len(c.Origins) != 0 || len(c.Hosts) != 2 {
		t.Errorf("environment and flags: %+v", c)
	}
	if l.Source("server.role") != "flag --role" || l.Source("sync.log_poll_interval") != "env BOTHY_SYNC__LOG_POLL_INTERVAL" {
		t.Errorf("sources %q, %q", l.Source("server.role"), l.Source("sync.log_poll_interval"))
	}
}

func TestEveryFaultIsReportedAndNoValueEchoed(t *testing.T) {
	const marker = "s3cretvalue"
	s, _ := schema()
	s.Elsewhere("instance.name", "an owner changes it in the settings")
	_, err := s.Load(Sources{
		FileName: "f.yaml",
		File:     []byte("server: {role: " + marker + "}\ninstance: {name: " + marker + "}\nsync: {log_poll_intervall: 1s}\nhttp: {max_json_depth: 7}\nweb: {client_metrics: yes please}\n"),
		Environ: []string{
			"BOTHY_DATABASE__PASSWORD_REF=" + marker, "BOTHY_SYNC__LOG_POLL_INTERVAL=31s", "BOTHY_X=" + marker,
			"BOTHY_HTTP__MAX_JSON_BODY_BYTES=17MiB", "BOTHY_API__CORS_ALLOWED_ORIGINS=https://a/" + marker,
			"BOTHY_SERVER__TRUSTED_PROXIES=0.0.0.0/0", "BOTHY_SEARCH__LOCALE_MAP={" + marker, "BOTHY_SERVER__PUBLIC_URL=https://u:" + marker + "@h",
			"BOTHY_SERVER__LISTEN_ADDR=" + marker, "BOTHY_TELEMETRY__TRACE_SAMPLE_RATIO=NaN",
		},
	})
	var problems Problems
	if !errors.As(err, &problems) {
		t.Fatalf("%v", err)
	}
	text := err.Error()
	if strings.Contains(text, marker) {
		t.Errorf("a value is echoed:\n%s", text)
	}
	for _, want := range []string{
		"server.role (file f.yaml): must be one of api, worker, all",
		"instance.name (file f.yaml): is no key of the configuration; an owner changes it",
		"sync.log_poll_intervall (file f.yaml): unknown key, did you mean sync.log_poll_interval?",
		"http.max_json_depth (file f.yaml): must be between 8 and 128",
		"web.client_metrics (file f.yaml): must be true or false",
		"database.password_ref (env BOTHY_DATABASE__PASSWORD_REF): must be file:",
		"sync.log_poll_interval (env BOTHY_SYNC__LOG_POLL_INTERVAL): must be between 100ms and 30s",
		"BOTHY_X (env): unknown variable",
		"http.max_json_body_bytes (env BOTHY_HTTP__MAX_JSON_BODY_BYTES): must be between 64KiB and 16MiB",
		"api.cors_allowed_origins (env BOTHY_API__CORS_ALLOWED_ORIGINS): item 1 must be an origin",
		"server.trusted_proxies (env BOTHY_SERVER__TRUSTED_PROXIES): item 1 must not be the network of all",
		"search.locale_map (env BOTHY_SEARCH__LOCALE_MAP): must be a map in JSON",
		"server.public_url (env BOTHY_SERVER__PUBLIC_URL): must be an origin",
		"server.listen_addr (env BOTHY_SERVER__LISTEN_ADDR): must be host:port",
		"telemetry.trace_sample_ratio (env BOTHY_TELEMETRY__TRACE_SAMPLE_RATIO): must be between 0 and 1",
		"secrets.signing_key_dir (default): is required",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("missing %q in\n%s", want, text)
		}
	}
	if len(problems) != 16 {
		t.Errorf("%d problems:\n%s", len(problems), text)
	}
}

func TestRangesIncludeTheirBorders(t *testing.T) {
	for value, ok := range map[string]bool{"100ms": true, "99ms": false, "30s": true, "30001ms": false, "1d": false} {
		s, _ := schema()
		_, err := s.Load(Sources{Environ: []string{required, "BOTHY_SYNC__LOG_POLL_INTERVAL=" + value}})
		if (err == nil) != ok {
			t.Errorf("%s: %v", value, err)
		}
	}
}

func TestYAMLBeyondPlainNestingIsRefused(t *testing.T) {
	for name, text := range map[string]string{
		"anchor":        "server: &a {role: api}\n",
		"tag":           "server: {role: !!str api}\n",
		"duplicate":     "server: {role: api}\nserver: {role: all}\n",
		"two documents": "server: {role: api}\n---\nserver: {role: all}\n",
		"list":          "- a\n",
		"null":          "server: {role: }\n",
		"broken":        "server: {role\n",
		"map for value": "server: {role: {a: b}}\n",
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := schema()
			if _, err := s.Load(Sources{FileName: "f", File: []byte(text), Environ: []string{required}}); err == nil {
				t.Error("accepted")
			}
		})
	}
	if _, l := load(t, Sources{FileName: "f", File: []byte("# nothing\n\nserver:\n")}); l.Source("server.role") != SourceDefault {
		t.Error("an empty section set something")
	}
}

func TestVariablesOfAnOrchestratorAreAccepted(t *testing.T) {
	load(t, Sources{Environ: []string{
		"BOTHY_SERVICE_HOST=10.0.0.1", "BOTHY_SERVICE_PORT=8080", "BOTHY_PORT=tcp://x", "BOTHY_PORT_8080_TCP_ADDR=x",
		"BOTHY_API_SERVICE_PORT_HTTP=1", "BOTHY_CONFIG_FILE=/x", "BOTHY_SECRET_ANY=x", "OTHER=1",
	}})
}

func TestCrossChecksRunBehindTheSingleOnes(t *testing.T) {
	s, c := schema()
	s.Check("a_above_b", []string{"http.max_json_depth", "server.role"}, func() error {
		if c.Count > 100 {
			return errors.New("too deep for this role")
		}
		return nil
	})
	s.Warn("shared", []string{"server.role"}, func() error { return errors.New("think of it") })
	_, err := s.Load(Sources{Environ: []string{required, "BOTHY_HTTP__MAX_JSON_DEPTH=128"}})
	if err == nil || !strings.Contains(err.Error(), "http.max_json_depth, server.role (check a_above_b, env BOTHY_HTTP__MAX_JSON_DEPTH, default): too deep") {
		t.Errorf("%v", err)
	}
	l, err := s.Load(Sources{Environ: []string{required, "BOTHY_HTTP__MAX_JSON_DEPTH=100", "BOTHY_DATABASE__PASSWORD_REF=env:X"}})
	if err != nil || len(l.Warnings()) != 2 {
		t.Errorf("%v, warnings %v", err, l)
	}
}

func TestNamesAndVariablesMapBothWays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		segment := rapid.StringMatching(`[a-z0-9]+(_[a-z0-9]+){0,3}`)
		name := strings.Join(rapid.SliceOfN(segment, 2, 5).Draw(t, "segments"), ".")
		if back, ok := KeyName(EnvName(name)); !ok || back != name {
			t.Fatalf("%s -> %s -> %s", name, EnvName(name), back)
		}
	})
}

func TestPrintShowsValuesWithTheirSource(t *testing.T) {
	_, l := load(t, Sources{Environ: []string{"BOTHY_HTTP__MAX_JSON_BODY_BYTES=2MiB", "BOTHY_SYNC__LOG_POLL_INTERVAL=10s"}})
	var changed, all bytes.Buffer
	if err := errors.Join(l.Print(&changed, true), l.Print(&all, false)); err != nil {
		t.Fatal(err)
	}
	want := "http.max_json_body_bytes: 2097152  # env BOTHY_HTTP__MAX_JSON_BODY_BYTES\nsecrets.signing_key_dir: /keys  # env BOTHY_SECRETS__SIGNING_KEY_DIR\nsync.log_poll_interval: 10s  # env BOTHY_SYNC__LOG_POLL_INTERVAL\n"
	if changed.String() != want {
		t.Errorf("changed:\n%s", &changed)
	}
	if !strings.Contains(all.String(), "database.password_ref: file:<secrets.dir>/database_app_password  # default\n") ||
		!strings.Contains(all.String(), "authz.expiry_reminder_before: 168h,24h  # default\n") {
		t.Errorf("all:\n%s", &all)
	}
	if refs := l.Refs(); len(refs) != 1 || refs[0].Key != "database.password_ref" {
		t.Errorf("refs %v", refs)
	}
}

func TestReferenceNamesEveryKey(t *testing.T) {
	s, _ := schema()
	var b bytes.Buffer
	if err := s.Reference(&b); err != nil {
		t.Fatal(err)
	}
	for _, k := range s.Keys() {
		if !strings.Contains(b.String(), "`"+k.Name+"`<br>`"+EnvName(k.Name)+"`") {
			t.Errorf("%s is missing", k.Name)
		}
	}
	if !strings.Contains(b.String(), "How often \\| the log") || !strings.Contains(b.String(), "between 100ms and 30s") {
		t.Error(b.String())
	}
}

func TestListenersAndAddresses(t *testing.T) {
	for _, c := range []struct {
		a, b string
		ok   bool
	}{
		{"127.0.0.1:8080", "127.0.0.1:8081", true},
		{"127.0.0.1:8080", "127.0.0.1:8080", false},
		{"0.0.0.0:8080", "127.0.0.1:8080", false},
		{":8080", "[::1%lo]:8080", false},
		{"[::ffff:127.0.0.1]:8080", "127.0.0.1:8080", false},
		{"10.0.0.1:8080", "127.0.0.1:8080", true},
		{"127.0.0.1:0", "127.0.0.1:0", true},
	} {
		if err := ListenersDiffer(c.a, c.b); (err == nil) != c.ok {
			t.Errorf("%s and %s: %v", c.a, c.b, err)
		}
	}
	for url, ok := range map[string]bool{
		"https://a.example": true, "http://a.example": false, "http://localhost:8080": true, "http://[::1]:1": true, "": true,
	} {
		if err := PublicURLSecure(url); (err == nil) != ok {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestWrongTagsPanic(t *testing.T) {
	for name, target := range map[string]any{
		"no dot": &struct {
			A int `key:"a"`
		}{},
		"bad default": &struct {
			A int `key:"a.b" default:"x"`
		}{},
		"bad type": &struct {
			A chan int `key:"a.b"`
		}{},
		"no pointer": struct{}{},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("accepted")
				}
			}()
			NewSchema().Bind("x", target)
		})
	}
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte("server: {role: api}\n"), "BOTHY_SERVER__ROLE=all")
	f.Add([]byte("a: [1, {b: c}]\n"), "BOTHY_SEARCH__LOCALE_MAP={}")
	f.Fuzz(func(t *testing.T, file []byte, env string) {
		const marker = "mArKeR"
		s, _ := schema()
		// Loading must never panic, and no fault may repeat what was typed.
		_, err := s.Load(Sources{FileName: "f", File: append(file, []byte("\nserver.listen_addr: "+marker)...), Environ: []string{env}})
		if err != nil && strings.Contains(err.Error(), marker) {
			t.Errorf("echoed: %v", err)
		}
	})
}
