// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"

	"github.com/OWNER/bothy/services/server/api/contract"
	identityhttp "github.com/OWNER/bothy/services/server/internal/identity/adapters/httpapi"
	instancedomain "github.com/OWNER/bothy/services/server/internal/instance/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/clock"
	"github.com/OWNER/bothy/services/server/internal/platform/buildinfo"
	"github.com/OWNER/bothy/services/server/internal/platform/config"
	"github.com/OWNER/bothy/services/server/internal/platform/egress"
	"github.com/OWNER/bothy/services/server/internal/platform/health"
	"github.com/OWNER/bothy/services/server/internal/platform/httpserver"
	"github.com/OWNER/bothy/services/server/internal/platform/jobs"
	"github.com/OWNER/bothy/services/server/internal/platform/lifecycle"
	"github.com/OWNER/bothy/services/server/internal/platform/otel"
	"github.com/OWNER/bothy/services/server/internal/platform/pg"
	"github.com/OWNER/bothy/services/server/internal/platform/ratelimit"
	"github.com/OWNER/bothy/services/server/internal/platform/secrets"
	"github.com/OWNER/bothy/services/server/internal/platform/webassets"
	"github.com/OWNER/bothy/services/server/migrations"
)

// Console is where a command writes: what a script reads, and everything else.
type Console struct{ Out, Err io.Writer }

// Serve runs the server until a signal and gives the exit code of the process.
func Serve(ctx context.Context, from Sources, console Console, signals <-chan os.Signal) int {
	c, loaded, err := LoadConfig(from)
	if err != nil {
		_, _ = fmt.Fprintln(console.Err, err)
		return lifecycle.ExitConfig
	}
	if malformed, err := malformedSecrets(c, loaded); err == nil && len(malformed) > 0 {
		for _, fault := range malformed {
			_, _ = fmt.Fprintln(console.Err, fault)
		}
		return lifecycle.ExitConfig
	}
	s := NewServer(c, Options{Console: console, Warnings: loaded.Warnings()})
	return s.Run(ctx, signals)
}

// Options change how a server runs; the zero value is production.
type Options struct {
	Console  Console
	Warnings config.Problems
	// Log replaces the logger that the configuration describes.
	Log *slog.Logger
	// Clock replaces the clock of the machine.
	Clock clock.Clock
	// Observer is told what the server answered and did.
	Observer Observer
	// Unproven is told of successes that were thrown away because nobody had authorized them.
	Unproven func(operation string, checks []authorize.Check)
	// Inspect sees a request and its checks before a success leaves.
	Inspect func(operation string, r *http.Request, checks *authorize.CheckLog)
	// Ready is called with the address of the public listener once the start is done.
	Ready func(address, internal string)
}

// Server is one life of the process.
type Server struct {
	process
	options Options
	runner  *lifecycle.Runner
	health  *health.Checker
	startup *health.Gate
	store   *store
	// finalized is closed while the database may be a copy, recent while its schema asks for a
	// newer server. Either keeps the process from serving although it runs.
	finalized *health.Gate
	recent    *health.Gate
	chain     *httpserver.Chain
	public    *httpserver.Server
	private   *httpserver.Server
	runtime   *jobs.Runtime
}

// NewServer prepares a server; Run starts it.
func NewServer(c *Config, o Options) *Server {
	if o.Clock == nil {
		o.Clock = clock.System{}
	}
	if o.Observer == nil {
		o.Observer = nobody{}
	}
	given := o
	if o.Log == nil {
		o.Log = otel.NewLogger(c.Log, o.Console.Err, isTerminal(o.Console.Err))
	}
	s := &Server{options: given, startup: health.NewGate(false), finalized: health.NewGate(true), recent: health.NewGate(true)}
	s.config, s.log, s.clock, s.observer = c, o.Log, o.Clock, o.Observer
	s.meter, s.telemetry = otel.NoMeter{}, otel.Off()
	s.runner = lifecycle.New(c.Lifecycle, o.Log, o.Clock)
	s.health = health.New(health.Info{
		Role: c.Lifecycle.Role, Version: buildinfo.Current().Version, StartedAt: o.Clock.Now(), Maintenance: c.HTTP.MaintenanceMode,
	}, o.Clock)
	for _, problem := range o.Warnings {
		o.Log.Warn("configuration", "problem", problem.String())
	}
	return s
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// Run starts everything in order, serves, and stops in order.
func (s *Server) Run(ctx context.Context, signals <-chan os.Signal) int {
	steps := []struct {
		name string
		run  func(ctx context.Context) error
	}{
		{"secrets", s.openSecrets},
		{"telemetry", s.startTelemetry},
		{"internal_listener", s.openInternal},
		{"database", s.openDatabase},
		{"schema", s.checkSchema},
		{"modules", s.buildModules},
		{"instance", s.checkInstance},
		{"signing_keys", s.ensureKeys},
		{"routes", s.buildRoutes},
		{"jobs", s.openJobs},
		{"serve", s.serve},
	}
	for _, step := range steps {
		s.runner.Step(step.name, step.run)
	}
	return s.runner.Run(ctx, signals)
}

func (s *Server) startTelemetry(ctx context.Context) error {
	c := s.config.Otel
	c.Environment, c.Role, c.Version = s.config.Instance.Environment, s.config.Lifecycle.Role, buildinfo.Current().Version
	telemetry, err := otel.Setup(ctx, c)
	if err != nil {
		return err
	}
	s.telemetry, s.meter = telemetry, telemetry.Meter()
	if err := s.secrets.Watch("telemetry.otlp_headers_ref", c.HeadersRef, func(v secrets.Value) error { return telemetry.UseHeaders(v.Reveal()) }); err != nil {
		return err
	}
	unusable := s.meter.Counter("bothy.secrets.rotation_failures")
	s.secrets.OnFailure(func(key string) { unusable.Add(context.Background(), 1, "bothy.key", key) })
	telemetry.LogFaults(s.log)
	s.config.PG.Metrics = pg.NewMetrics(s.meter)
	s.meter.Watch("bothy.process.ready", func(observe otel.Observe) {
		if s.startup.Check(context.Background()) {
			observe(1)
			return
		}
		observe(0)
	})
	if s.options.Log == nil {
		s.log = telemetry.WithExport(s.config.Log, s.options.Console.Err, isTerminal(s.options.Console.Err))
	}
	s.runner.OnStop(lifecycle.PhaseTelemetry, "telemetry", s.config.Lifecycle.TelemetryFlushTimeout, telemetry.Shutdown)
	return nil
}

func (s *Server) openSecrets(context.Context) (err error) {
	if s.secrets, err = secrets.New(s.config.Secrets, s.log, s.clock); err != nil {
		return err
	}
	s.limiter, err = ratelimit.New(s.config.RateLimit, s.clock)
	if err != nil {
		return err
	}
	s.egress, err = egress.New(s.config.Egress, egress.WithListeners(s.config.HTTP.ListenAddr, s.config.HTTP.InternalListenAddr))
	if err != nil {
		return err
	}
	s.runner.Go(lifecycle.PhaseTail, "ratelimit", s.limiter.Run)
	s.runner.Go(lifecycle.PhaseTail, "secrets", func(ctx context.Context) error { return stopped(ctx, s.secrets.Run(ctx)) })
	return nil
}

// openInternal answers health from here on: alive, and not ready with the reason.
func (s *Server) openInternal(ctx context.Context) error {
	stopping := health.NewGate(true)
	s.health.Register("startup", s.startup.Check)
	s.health.Register("shutting_down", stopping.Check)
	s.health.Register("schema_requires_newer_server", s.recent.Check)
	s.health.Register("restore_not_finalized", s.finalized.Check)
	s.runner.OnUnready(func() {
		stopping.Set(false)
		s.health.Invalidate()
	})
	s.private = httpserver.NewServer("internal", s.config.HTTP.InternalListenAddr, s.config.HTTP, s.health.Handler(), 0, s.log)
	if err := s.private.Listen(ctx); err != nil {
		return err
	}
	s.runner.Go(lifecycle.PhaseStores, "internal_listener", s.private.Run)
	return nil
}

func (s *Server) openDatabase(ctx context.Context) (err error) {
	s.store = &store{config: s.config, secrets: s.secrets, log: s.log}
	if err := s.store.startEmbedded(ctx); err != nil {
		return err
	}
	if s.store.embedded != nil {
		s.runner.OnStop(lifecycle.PhaseEmbedded, "embedded_database", s.config.Embedded.StopTimeout, s.store.stopEmbedded)
		s.watchEmbedded()
	}
	if s.db, err = s.store.open(ctx, s.clock); err != nil {
		return err
	}
	s.db.WatchPool(s.meter)
	s.runner.OnStop(lifecycle.PhaseStores, "database_pool", 0, func(context.Context) error { s.db.Close(); return nil })
	s.health.Register("database", func(ctx context.Context) bool { return s.db.Ping(ctx) == nil })
	if s.config.PG.DSN == "" {
		return s.secrets.Watch("database.password_ref", s.config.PG.PasswordRef, func(password secrets.Value) error {
			s.db.UsePassword(password.Reveal())
			return nil
		})
	}
	return nil
}

// watchEmbedded ends the process when the supervision of the database gives up.
func (s *Server) watchEmbedded() {
	cluster := s.store.embedded
	go func() {
		<-cluster.Done()
		if err := cluster.Err(); err != nil {
			s.runner.Fail(fmt.Errorf("embedded database: %w", err))
		}
	}()
}

func (s *Server) checkSchema(ctx context.Context) error {
	if err := pg.CheckLocale(ctx, s.db.Querier(ctx)); err != nil {
		return err
	}
	return checkSchema(ctx, s.db, newestMigration(migrations.Files))
}

func (s *Server) buildModules(ctx context.Context) error { return s.build(ctx) }

// checkInstance reads the row of the installation. A schema that asks for a newer server, and
// a database that is not the one the installation was written to, keep the process alive and
// unready: ending it would only make a supervisor start it again.
func (s *Server) checkInstance(ctx context.Context) error {
	info, err := s.instance.service.Info(ctx)
	if err != nil {
		return fmt.Errorf("read the instance (run bothy migrate up if it is missing): %w", err)
	}
	s.checkServerVersion(info.MinServerVersion, buildinfo.Current().Version)
	if s.config.Database.RestoreGuard == "off" || info.DBSystemIdentifier == "" {
		return nil
	}
	id, err := pg.ReadIdentity(ctx, s.db.Querier(ctx))
	if err != nil {
		return err
	}
	if fmt.Sprint(id.SystemIdentifier) != info.DBSystemIdentifier || int64(id.Timeline) != info.DBTimelineID {
		s.finalized.Set(false)
		s.log.Error("this is not the database that the installation was written to; run bothy restore finalize", "component", "restore_guard")
	}
	return nil
}

// checkServerVersion closes the gate when the schema asks for a newer server. A build that no
// release made has no version to compare.
func (s *Server) checkServerVersion(needed, running string) {
	if running == buildinfo.Development || instancedomain.ServerAccepted(needed, running) {
		return
	}
	s.recent.Set(false)
	s.log.Error("the schema asks for a newer server", "component", "schema_guard", "needed", needed, "running", running)
}

// usable reports whether this process may read and write the database.
func (s *Server) usable(ctx context.Context) bool {
	return s.finalized.Check(ctx) && s.recent.Check(ctx)
}

func (s *Server) ensureKeys(ctx context.Context) error {
	if !s.usable(ctx) {
		return nil // Keys that a copy has lost would be retired here and in the record.
	}
	if err := s.process.ensureKeys(ctx); err != nil {
		return err
	}
	s.health.Register("signing_keys", func(ctx context.Context) bool {
		return s.instance.service.CheckKeys(ctx) == nil
	})
	return nil
}

// buildRoutes makes the chain of the public listener and holds it against the catalogue.
func (s *Server) buildRoutes(context.Context) error {
	contract.Prepare()
	list, err := operations()
	if err != nil {
		return err
	}
	pages, err := webassets.New(webassets.Options{
		Dir: s.config.HTTP.AssetsDir, PublicURL: s.config.HTTP.PublicURL, ReportOnly: s.config.HTTP.CSPReportOnly,
	})
	if err != nil {
		return err
	}
	s.chain, err = httpserver.New(httpserver.Options{
		Config: s.config.HTTP, Log: s.log, Clock: s.clock, Telemetry: s.telemetry, Meter: s.meter, Limiter: s.limiter,
		Authenticator: s.identity.authenticator, Units: s.units, Idempotency: s.sync.idempotency, Positions: s.sync.tail,
		SetupComplete:     func() (bool, error) { return s.instance.service.SetupComplete(context.Background()) },
		MaintenanceAllows: s.goesOn,
		Nonces:            identityhttp.Nonces(s.identity.proofs),
		RateKeys:          map[string]func(*http.Request, actor.Actor) string{"auth_session": bySession},
		Pages:             pages, Observe: s.observe, Unproven: s.unproven, Inspect: s.inspect,
	}, list)
	if err != nil {
		return err
	}
	return mount(s.chain, s.handlers(), identityhttp.ProofMiddleware(s.identity.proofs), s.gateway.handler, s.instance.http.SubmitCspReport)
}

// goesOn lets an agent finish the run that it works on while the instance takes no other
// writes: an answer that could not be delivered would have been paid for in vain.
func (s *Server) goesOn(r *http.Request, _ httpserver.Operation) (bool, error) {
	who := actor.From(r.Context())
	if who.Kind != actor.KindAgent || who.ActingFor == nil {
		return false, nil
	}
	return s.runs.service.Running(r.Context(), who.ActingFor.RunID)
}

// bySession keeps people behind one address apart; what carries no session is counted by the
// address.
func bySession(_ *http.Request, a actor.Actor) string {
	if !a.IsSession() {
		return ""
	}
	return a.SessionID.String()
}

func (s *Server) observe(o httpserver.Observation) {
	s.observer.Answer(o.Operation, o.Status, string(o.Code))
}

func (s *Server) unproven(op httpserver.Operation, checks []authorize.Check) {
	if s.options.Unproven != nil {
		s.options.Unproven(op.ID, checks)
	}
}

func (s *Server) inspect(r *http.Request, op httpserver.Operation, checks *authorize.CheckLog) {
	if s.options.Inspect != nil {
		s.options.Inspect(op.ID, r, checks)
	}
}

// openJobs makes the runtime of the jobs. It is open for inserting before anything can
// insert; working begins last.
func (s *Server) openJobs(ctx context.Context) error {
	deps := jobs.Dependencies{
		DB: s.db, Barrier: s.db.Barrier(), Log: s.log, Telemetry: s.telemetry, Meter: s.meter,
		InsertOnly: !s.config.Lifecycle.Works(), SoftStop: s.config.Lifecycle.JobsSoftTimeout, Done: s.jobDone,
	}
	if s.config.HTTP.ReadOnly() {
		deps.Maintenance = &jobs.Maintenance{
			RetryAfter: s.config.HTTP.MaintenanceRetryAfter,
			Allowed:    func(kind string) bool { return kind == "runs.cancel_timeout" },
		}
	}
	runtime, err := jobs.New(ctx, s.config.Jobs, deps, s.jobs)
	if err != nil {
		return err
	}
	s.runner.OnStop(lifecycle.PhaseStores, "jobs_pool", 0, func(context.Context) error { runtime.Close(); return nil })
	if err := runtime.CheckMigrated(ctx); err != nil {
		return err
	}
	s.runtime, s.queue.runtime = runtime, runtime
	return nil
}

func (s *Server) jobDone(kind string, err error) {
	if err == nil {
		s.observer.Job(kind)
	}
}

// serve opens the process to the world: the tail at the head, then connections, then work.
func (s *Server) serve(ctx context.Context) error {
	if !s.usable(ctx) {
		// Nothing is read, written or delivered from a database that may be a copy, or whose
		// schema this server does not understand.
		return nil
	}
	// The record is the last writer to stop: what others were refused while they stopped is
	// still written down.
	s.runner.Go(lifecycle.PhaseMeasurement, "audit", func(ctx context.Context) error { return stopped(ctx, s.audit.recorder.Run(ctx)) })
	if s.config.Lifecycle.ServesAPI() {
		if err := s.serveAPI(ctx); err != nil {
			return err
		}
	}
	if s.config.Lifecycle.Works() {
		s.runner.Go(lifecycle.PhaseJobs, "jobs", s.runtime.Run)
	}
	s.startup.Set(true)
	s.health.Invalidate()
	if s.options.Ready != nil {
		address := ""
		if s.public != nil {
			address = s.public.Addr()
		}
		s.options.Ready(address, s.private.Addr())
	}
	return nil
}

func (s *Server) serveAPI(ctx context.Context) error {
	if err := s.sync.tail.Start(ctx); err != nil {
		return err
	}
	if s.config.Lifecycle.Role == "all" {
		// Commands are processes beside this one; they notify, and the tail listens.
		s.sync.appender.ReadHere(s.sync.tail.Wake)
	}
	if err := s.authz.service.LoadStructure(ctx); err != nil {
		return err
	}
	s.gateway.gateway.Start(s.sync.tail.LocalHead())
	if err := s.agents.tracker.Load(system(ctx)); err != nil {
		return err
	}
	s.runner.Go(lifecycle.PhaseTail, "log_tail", func(ctx context.Context) error { return stopped(ctx, s.sync.tail.Run(ctx)) })
	s.runner.Go(lifecycle.PhaseTail, "credential_uses", func(ctx context.Context) error { return stopped(ctx, s.identity.seen.Run(ctx)) })
	s.runner.Go(lifecycle.PhaseConnections, "agent_presence", func(ctx context.Context) error {
		s.agents.tracker.Run(system(ctx))
		return nil
	})
	s.runner.OnStop(lifecycle.PhaseTail, "agent_presence", 0, func(ctx context.Context) error { return s.agents.tracker.Stop(system(ctx)) })
	s.runner.OnStop(lifecycle.PhaseConnections, "gateway", 0, s.gateway.gateway.Drain)
	s.health.Register("log_tail", func(context.Context) bool { return s.sync.tail.Ready() })

	s.public = httpserver.NewServer("public", s.config.HTTP.ListenAddr, s.config.HTTP, http.Handler(s.chain), s.config.Lifecycle.HTTPGrace, s.log)
	if err := s.useTLS(); err != nil {
		return err
	}
	if err := s.public.Listen(ctx); err != nil {
		return err
	}
	s.runner.Go(lifecycle.PhaseHTTP, "public_listener", s.public.Run)
	s.runner.Public()
	s.runner.SetReadyDetail(s.public.Addr() + " " + buildinfo.Current().Version)
	return nil
}

// useTLS turns on TLS when the configuration has a pair, and takes the next pair when its key
// changes: whoever renews both writes the certificate first.
func (s *Server) useTLS() error {
	if s.config.HTTP.TLSCertificateFile == "" {
		return nil
	}
	return s.secrets.Watch("server.tls.key_ref", s.config.HTTP.TLSKeyRef, func(key secrets.Value) error {
		certificate, err := os.ReadFile(s.config.HTTP.TLSCertificateFile)
		if err != nil {
			return errors.New("server.tls.certificate_file cannot be read")
		}
		return s.public.SetCertificate(certificate, []byte(key.Reveal()))
	})
}

// stopped lets a component that was told to end do so without an error.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
