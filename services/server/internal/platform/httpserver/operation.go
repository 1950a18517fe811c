// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"context"
	"net/http"

	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
)

// BodyClass says what the body of a request is.
type BodyClass string

// The classes of bodies. BodyTransfer streams past the chain with the deadline of
// transfers; Operation.MaxBodyBytes limits it.
const (
	BodyNone     BodyClass = "none"
	BodyJSON     BodyClass = "json"
	BodyTransfer BodyClass = "transfer"
	// BodyReport is read by its own handler; Operation.Media and MaxBodyBytes limit it.
	BodyReport BodyClass = "report"
)

// MaintenanceRule says what a write does while the instance is read-only.
type MaintenanceRule string

// The rules. MaintenanceConditional asks Options.MaintenanceAllows.
const (
	MaintenanceDeny        MaintenanceRule = "deny"
	MaintenanceAllow       MaintenanceRule = "allow"
	MaintenanceNoWrite     MaintenanceRule = "no_write"
	MaintenanceConditional MaintenanceRule = "conditional"
)

// Operation is what the chain knows of one operation. The composition root fills it from
// the generated table of routes and the catalogue of actions.
type Operation struct {
	// ID is the operationId, Pattern the pattern for http.ServeMux with the method.
	ID, Pattern string
	Action      authorize.Action
	// RateLimitClass is the bucket the request draws from, with or without "rl.".
	RateLimitClass string
	// Writes says that the effect of the action is write.
	Writes bool
	Body   BodyClass
	// MaxBodyBytes replaces the limit of the class; zero keeps it.
	MaxBodyBytes int64
	// Media are the types that a body of BodyReport may have.
	Media []string
	// Transfer gives the operation the deadline of transfers although its body is small:
	// downloads.
	Transfer              bool
	RequiresIfMatch       bool
	IgnoresIdempotencyKey bool
	// AuthorizedInBand operations authenticate and authorize on their connection: the chain
	// only throttles them.
	AuthorizedInBand bool
	// AnonymousCredentials operations check a credential of their own kind: the chain leaves
	// the actor anonymous whatever the header holds.
	AnonymousCredentials bool
	// ProvenByKey operations take the proof of a device key and no other credential.
	ProvenByKey bool
	// SignedIn operations are for callers who have proven who they are; others end before the
	// handler.
	SignedIn bool
	// BeforeSetup opens the operation before the instance has an owner.
	BeforeSetup bool
	Maintenance MaintenanceRule
	// SyncPosition makes a read tell the position of the event log that it reflects.
	SyncPosition bool
}

// OperationFrom gives the operation of the request; ok is false outside a route.
func OperationFrom(ctx context.Context) (op Operation, ok bool) {
	x := exchangeFrom(ctx)
	if x == nil || x.op == nil {
		return Operation{}, false
	}
	return *x.op, true
}

// next is the rest of the chain. w is the exchange itself or, inside the stage that stores
// answers, the buffer before it.
type next func(x *exchange, w http.ResponseWriter, r *http.Request)

// stage wraps the rest of the chain for one operation. It returns the rest unchanged when
// the operation does not need it.
type stage struct {
	name string
	wrap func(c *Chain, op *Operation, rest next) next
}
