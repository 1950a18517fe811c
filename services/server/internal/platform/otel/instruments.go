// SPDX-License-Identifier: Apache-2.0

package otel

// kind says how an instrument measures.
type kind string

const (
	kindCounter   kind = "counter"
	kindHistogram kind = "histogram"
	kindGauge     kind = "gauge"
	// kindWatch is a gauge that is read when figures leave.
	kindWatch kind = "watch"
)

// instrument is one entry of the list of everything that this program measures. Attributes that
// an entry does not name never leave.
type instrument struct {
	name       string
	kind       kind
	unit       string
	help       string
	attributes []string
	// bounds of a histogram; those of seconds when empty.
	bounds []float64
}

// seconds are the bounds of histograms of time.
var seconds = []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10}

// sizes are the bounds of histograms of small numbers.
var sizes = []float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512}

// instruments is the list. Its names are those of chapter 16, section 13.3, and a test holds it
// against the code that measures.
var instruments = []instrument{
	{name: "http.server.request.duration", kind: kindHistogram, unit: "s", help: "Time of requests.",
		attributes: []string{"http.request.method", "http.route", "http.response.status_code", "error.type"}},
	{name: "bothy.http.rejected", kind: kindCounter, unit: "{request}", help: "Requests that ended before their handler.", attributes: []string{"bothy.reason"}},
	{name: "bothy.maintenance.rejected", kind: kindCounter, unit: "{request}", help: "Writes refused in maintenance.", attributes: []string{"bothy.action"}},
	{name: "bothy.ratelimit.rejected", kind: kindCounter, unit: "{request}", help: "Requests above their rate.", attributes: []string{"bothy.ratelimit.class"}},
	{name: "bothy.authz.errors", kind: kindCounter, unit: "{error}", help: "Decisions that could not be made, or were not asked for.", attributes: []string{"bothy.reason"}},
	{name: "bothy.panics", kind: kindCounter, unit: "{panic}", help: "Panics that were caught.", attributes: []string{"bothy.component"}},
	{name: "bothy.process.ready", kind: kindWatch, unit: "1", help: "1 while the process serves."},

	{name: "bothy.db.tx.duration", kind: kindHistogram, unit: "s", help: "Time of units of work, from begin to answer.", attributes: []string{"bothy.outcome"}},
	{name: "bothy.db.tx.retries", kind: kindCounter, unit: "{unit}", help: "Repetitions of units of work.", attributes: []string{"bothy.reason"}},
	{name: "bothy.db.flush.wait", kind: kindHistogram, unit: "s", help: "Wait of a commit for its flush."},
	{name: "bothy.db.flush.group_size", kind: kindHistogram, unit: "{commit}", help: "Commits that one flush served.", bounds: sizes},
	{name: "bothy.db.listen.reconnects", kind: kindCounter, unit: "{connection}", help: "Replaced LISTEN connections.", attributes: []string{"bothy.component"}},
	{name: "db.client.connection.wait_time", kind: kindHistogram, unit: "s", help: "Wait for a connection of the pool."},
	{name: "db.client.connection.count", kind: kindWatch, unit: "{connection}", help: "Connections of the pool.", attributes: []string{"db.client.connection.state"}},

	{name: "bothy.job.duration", kind: kindHistogram, unit: "s", help: "Time of jobs.", attributes: []string{"bothy.job.kind", "bothy.outcome"}},
	{name: "bothy.job.discarded", kind: kindCounter, unit: "{job}", help: "Jobs that were given up.", attributes: []string{"bothy.job.kind"}},

	{name: "bothy.signing_key.age", kind: kindGauge, unit: "s", help: "How long the active key has been signing.", attributes: []string{"bothy.purpose"}},
	{name: "bothy.signing_key.rotation_failures", kind: kindCounter, unit: "{rotation}", help: "Rotations that could not be done.", attributes: []string{"bothy.purpose"}},
	{name: "bothy.csp.violations", kind: kindCounter, unit: "{report}", help: "What browsers reported about the content security policy.", attributes: []string{"bothy.directive"}},
	{name: "bothy.audit.chain_breaks", kind: kindCounter, unit: "{break}", help: "Breaks of the audit chain that the periodic verification found."},
	{name: "bothy.audit.denials_lost", kind: kindCounter, unit: "{row}", help: "Denials whose row could not be written."},
	{name: "bothy.audit.sink_failures", kind: kindCounter, unit: "{checkpoint}", help: "Checkpoints that could not be deposited."},
	{name: "bothy.audit.checkpoint_age", kind: kindWatch, unit: "s", help: "Age of the newest checkpoint that this process made."},

	{name: "bothy.secrets.rotation_failures", kind: kindCounter, unit: "{rotation}", help: "Changed files with secrets that are not usable; the old value stays.", attributes: []string{"bothy.key"}},
	{name: "bothy.telemetry.dropped", kind: kindCounter, unit: "{item}", help: "Spans and log records that never reached the collector.", attributes: []string{"bothy.signal"}},
	{name: "bothy.telemetry.rejected_values", kind: kindCounter, unit: "{value}", help: "Attribute values that had no allowed form.", attributes: []string{"bothy.instrument"}},
}
