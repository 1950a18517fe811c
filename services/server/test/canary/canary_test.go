// SPDX-License-Identifier: Apache-2.0

// Package canary looks for what people write in everything that leaves the server for its operator: spans, log records
// and numbers at the collector, and the log on the standard error. The built server talks to a collector that keeps every
// byte, while people and an agent use it with texts that stand nowhere else.
package canary

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/test/system"
)

// collector keeps what it is sent, by path.
type collector struct {
	mu   sync.Mutex
	sent map[string][]byte
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		unpacked, err := gzip.NewReader(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		body = unpacked
	}
	text, err := io.ReadAll(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent[r.URL.Path] = append(c.sent[r.URL.Path], text...)
}

func (c *collector) bytes(path string) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return bytes.Clone(c.sent[path])
}

// cage gives out texts that stand nowhere else.
type cage struct{ birds map[string]string }

func (c *cage) bird(kind string) string {
	text := fmt.Sprintf("canary%04d%s", len(c.birds), strings.ReplaceAll(system.NewID(), "-", "")[20:])
	c.birds[text] = kind
	return text
}

func (c *cage) search(t *testing.T, place string, text []byte) {
	t.Helper()
	for bird, kind := range c.birds {
		if at := bytes.Index(text, []byte(bird)); at >= 0 {
			t.Errorf("%s holds %s: …%q…", place, kind, text[max(0, at-120):min(len(text), at+40)])
		}
	}
}

func TestNothingThatPeopleWriteReachesTheOperator(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	sink := &collector{sent: map[string][]byte{}}
	endpoint := httptest.NewServer(sink)
	defer endpoint.Close()
	log := &bytes.Buffer{}
	inst := install(t, endpoint.URL, log)
	server, err := inst.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	birds := &cage{birds: map[string]string{}}
	use(t, inst, birds)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := server.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/v1/traces", "/v1/logs", "/v1/metrics"} {
		sent := sink.bytes(path)
		if len(sent) == 0 {
			t.Errorf("nothing came to %s", path)
		}
		birds.search(t, path, sent)
	}
	if log.Len() == 0 {
		t.Error("the log is empty")
	}
	birds.search(t, "the log", log.Bytes())
	if !bytes.Contains(sink.bytes("/v1/traces"), []byte("/threads/{thread_id}/messages")) {
		t.Error("the collector knows nothing of the messages that were sent")
	}
	if !bytes.Contains(sink.bytes("/v1/metrics"), []byte("http.server.request.duration")) {
		t.Error("the collector has no figures of the requests that were made")
	}
}

func install(t *testing.T, endpoint string, log io.Writer) *system.Installation {
	t.Helper()
	dir, err := os.MkdirTemp("", "bothy-canary-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil { // #nosec G302 -- PostgreSQL runs as another user
		t.Fatal(err)
	}
	binary, err := system.Build(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	inst, err := system.Install(t.Context(), system.Options{Dir: dir, Binary: binary, Log: log, Config: map[string]string{
		"telemetry.otlp_endpoint": endpoint, "telemetry.trace_sample_ratio": "1", "telemetry.export_logs": "true", "log.level": "debug",
		"ratelimit.class.read.burst": "10000", "ratelimit.class.read.per_minute": "10000",
	}})
	if err != nil {
		t.Fatal(err)
	}
	return inst
}

// use does what people do, what they do wrong, and what an agent makes of it.
func use(t *testing.T, inst *system.Installation, birds *cage) {
	t.Helper()
	ctx := t.Context()
	team, err := inst.Populate(ctx, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	channel, person := team.Channels[0], team.People[0]
	call := func(c *system.Client, method, path string, body any, want int) {
		t.Helper()
		err := c.Call(ctx, method, path, body, nil)
		if refused := want >= http.StatusBadRequest; err != nil != refused || refused && system.StatusOf(err) != want {
			t.Errorf("%s %s: %v, want %d", method, path, err, want)
		}
	}
	call(inst.Owner, http.MethodPost, "/spaces", map[string]any{"name": birds.bird("a name of a space")}, http.StatusCreated)
	call(inst.Owner, http.MethodPost, "/spaces/"+team.SpaceID+"/channels",
		map[string]any{"kind": "text", "name": birds.bird("a name of a channel"), "topic": birds.bird("a topic")}, http.StatusCreated)
	call(inst.Owner, http.MethodPost, "/users",
		map[string]any{"handle": birds.bird("a handle"), "display_name": birds.bird("a name of a person"), "issue_code": true}, http.StatusCreated)
	call(inst.Owner, http.MethodPost, "/groups",
		map[string]any{"name": birds.bird("a name of a group"), "handle": birds.bird("a handle of a group"), "description": birds.bird("a description")}, http.StatusCreated)
	join(t, inst, birds)
	messages := "/threads/" + channel.ThreadID + "/messages"
	for _, kind := range []string{"a message", "a second message"} {
		if _, err := person.Send(ctx, channel.ThreadID, system.NewID(), birds.bird(kind)); err != nil {
			t.Fatal(err)
		}
	}
	call(person, http.MethodPost, messages, map[string]any{"client_msg_id": system.NewID(), birds.bird("an unknown member"): birds.bird("its value")}, http.StatusBadRequest)
	call(person, http.MethodPost, messages, map[string]any{"client_msg_id": birds.bird("an ID of the wrong form"), "content": birds.bird("a refused message")}, http.StatusBadRequest)
	call(person, http.MethodGet, messages+"?limit="+birds.bird("a parameter of the wrong form"), nil, http.StatusBadRequest)
	call(person, http.MethodGet, "/channels/"+birds.bird("a path of the wrong form"), nil, http.StatusBadRequest)
	intruder := *person
	intruder.Token = birds.bird("a token that does not exist")
	call(&intruder, http.MethodGet, messages, nil, http.StatusUnauthorized)
	order(t, inst, team, birds)
}

// join lets somebody with an address in, on a device with a name, and looks for her.
func join(t *testing.T, inst *system.Installation, birds *cage) {
	t.Helper()
	ctx := t.Context()
	address := birds.bird("an address") + "@" + birds.bird("a domain of an address") + ".example"
	person := map[string]any{"handle": birds.bird("a handle"), "display_name": birds.bird("a name of a person"), "email": address, "issue_code": true}
	var created struct {
		Enrollment struct {
			Code string `json:"code"`
		} `json:"enrollment"`
	}
	if err := inst.Owner.Call(ctx, http.MethodPost, "/users", person, &created); err != nil {
		t.Fatal(err)
	}
	person["handle"] = birds.bird("a handle of somebody with the address of another")
	if err := inst.Owner.Call(ctx, http.MethodPost, "/users", person, nil); system.StatusOf(err) != http.StatusConflict {
		t.Errorf("an address that is taken: %v", err)
	}
	person["email"] = birds.bird("what is no address")
	if err := inst.Owner.Call(ctx, http.MethodPost, "/users", person, nil); system.StatusOf(err) != http.StatusBadRequest {
		t.Errorf("what is no address: %v", err)
	}
	session, err := inst.Enroll(ctx, created.Enrollment.Code, birds.bird("a name of a device"), system.NewHTTPClient(1))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/me", "/me/devices", "/directory?query=" + url.QueryEscape(address[:40])} {
		if err := session.Call(ctx, http.MethodGet, path, nil, nil); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// order lets an agent answer, and waits for the answer.
func order(t *testing.T, inst *system.Installation, team *system.Team, birds *cage) {
	t.Helper()
	ctx := t.Context()
	binary, err := system.BuildAgent(ctx, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	agent, err := inst.AddAgent(ctx, team.SpaceID, system.AgentOptions{
		Handle: birds.bird("a handle of an agent"), DisplayName: birds.bird("a name of an agent"), Binary: binary, Pause: "1ms", Concurrency: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	defer agent.Kill()
	person, thread := team.People[0], team.Channels[0].ThreadID
	text := birds.bird("an order")
	deadline := time.Now().Add(time.Minute)
	// Orders that came before the first connection of an agent are not for it, so the order is repeated.
	for time.Now().Before(deadline) {
		if _, err := person.Send(ctx, thread, system.NewID(), fmt.Sprintf("<@%s> %s", agent.ID, text)); err != nil {
			t.Fatal(err)
		}
		for range 30 {
			time.Sleep(100 * time.Millisecond)
			runs, err := person.RunsOf(ctx, thread)
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			for _, r := range runs {
				if r.State == "completed" && strings.Contains(r.Output.Text, text) {
					return
				}
			}
		}
	}
	t.Fatalf("the agent never answered; end of its log:\n%s", agent.Log())
}
