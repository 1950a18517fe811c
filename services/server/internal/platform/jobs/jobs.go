// SPDX-License-Identifier: Apache-2.0

// Package jobs runs background work from a queue in PostgreSQL. It is the only package that
// knows the library behind it (River).
//
// A module states the arguments of a job as a struct with a method Kind, registers a
// handler for it, and inserts jobs in the unit of work that causes them, so the job exists
// exactly when its cause does. Arguments hold IDs, positions and versions and nothing
// else: the queue is another place where data would have to be found and erased.
//
//	registry := jobs.NewRegistry()
//	jobs.Register(registry, jobs.QueueDefault, module.ExpireGrants)
//	registry.Every(time.Minute, ExpireArgs{})
//	runtime, err := jobs.New(ctx, config, dependencies, registry)
//	err = runtime.InsertTx(ctx, ExpireArgs{GrantID: id}, jobs.InsertOptions{})
//
// A job may run more than once: its handler checks the state before the effect. A handler
// passes its context on and returns its error when it ends, because nil means done.
package jobs

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/riverqueue/river"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// Queue names a queue. Each has its own workers, so that slow work of one kind does not
// hold up another.
type Queue string

// The queues.
const (
	QueueDefault     Queue = "default"
	QueueFiles       Queue = "files"
	QueueDelivery    Queue = "delivery"
	QueueMaintenance Queue = "maintenance"
	QueuePrivacy     Queue = "privacy"
)

// Config has the keys of the operator.
type Config struct {
	Schema             string `key:"jobs.schema" default:"jobs" type:"identifier" doc:"Schema of the queue; fixed after the first migration."`
	DefaultWorkers     int    `key:"jobs.queue.default.max_workers" default:"8" min:"1" max:"256" doc:"Short jobs that run at once."`
	FilesWorkers       int    `key:"jobs.queue.files.max_workers" default:"2" min:"1" max:"256" doc:"Scans and thumbnails that run at once."`
	DeliveryWorkers    int    `key:"jobs.queue.delivery.max_workers" default:"16" min:"1" max:"256" doc:"Pushes and webhooks that run at once."`
	MaintenanceWorkers int    `key:"jobs.queue.maintenance.max_workers" default:"2" min:"1" max:"256" doc:"Cleanups and checks that run at once."`
	PrivacyWorkers     int    `key:"jobs.queue.privacy.max_workers" default:"1" min:"1" max:"256" doc:"Exports and erasures that run at once."`
}

func (c Config) workers() map[Queue]int {
	return map[Queue]int{
		QueueDefault: c.DefaultWorkers, QueueFiles: c.FilesWorkers, QueueDelivery: c.DeliveryWorkers,
		QueueMaintenance: c.MaintenanceWorkers, QueuePrivacy: c.PrivacyWorkers,
	}
}

// Args are the arguments of a job. Kind is its stable name, for example authz.grant_expire.
type Args interface {
	Kind() string
}

// Registry collects handlers and schedules before the runtime is made.
type Registry struct {
	queues   map[string]Queue
	workers  *river.Workers
	periodic []*river.PeriodicJob
}

// NewRegistry makes an empty registry.
func NewRegistry() *Registry {
	return &Registry{queues: map[string]Queue{}, workers: river.NewWorkers()}
}

// Register adds the handler of a kind. It panics when the kind is taken or the arguments
// may not be stored: wiring that is wrong must not start.
func Register[T Args](r *Registry, queue Queue, handler func(ctx context.Context, args T) error) {
	var zero T
	kind := zero.Kind()
	if err := ValidateArgsType(reflect.TypeFor[T]()); err != nil {
		panic(fmt.Sprintf("jobs: %s: %v", kind, err))
	}
	if _, known := (Config{}).workers()[queue]; !known {
		panic(fmt.Sprintf("jobs: %s: unknown queue %s", kind, queue))
	}
	r.queues[kind] = queue
	river.AddWorker(r.workers, river.WorkFunc(func(ctx context.Context, job *river.Job[T]) error {
		return handler(ctx, job.Args)
	}))
}

// Every inserts a job of a registered kind at fixed intervals, and once when a worker takes
// the lead. At most one of them waits or runs at a time.
func (r *Registry) Every(interval time.Duration, args Args) {
	queue, known := r.queues[args.Kind()]
	if !known {
		panic("jobs: schedule for unregistered kind " + args.Kind())
	}
	r.periodic = append(r.periodic, river.NewPeriodicJob(river.PeriodicInterval(interval),
		func() (river.JobArgs, *river.InsertOpts) {
			return args, &river.InsertOpts{Queue: string(queue), UniqueOpts: unique()}
		}, &river.PeriodicJobOpts{ID: args.Kind(), RunOnStart: true}))
}

// Kinds lists the registered kinds with their queues.
func (r *Registry) Kinds() map[string]Queue {
	out := make(map[string]Queue, len(r.queues))
	for k, q := range r.queues {
		out[k] = q
	}
	return out
}

// ValidateArgsType checks that a type of arguments holds only IDs, lists of IDs and 64-bit
// integers.
func ValidateArgsType(t reflect.Type) error {
	if t.Kind() != reflect.Struct {
		return errors.New("arguments must be a struct")
	}
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() || f.Anonymous {
			return fmt.Errorf("field %s must be exported and not embedded", f.Name)
		}
		switch f.Type {
		case reflect.TypeFor[ids.ID](), reflect.TypeFor[[]ids.ID](), reflect.TypeFor[int64]():
		default:
			return fmt.Errorf("field %s is a %s; only IDs, lists of IDs and int64 may be stored", f.Name, f.Type)
		}
	}
	return nil
}

// finalError is a failure that another attempt would only find again.
type finalError struct{ err error }

// Error implements error.
func (e *finalError) Error() string { return e.err.Error() }

// Unwrap gives the cause.
func (e *finalError) Unwrap() error { return e.err }

// Final marks the error of a handler as one that is not tried again.
func Final(err error) error { return &finalError{err} }
