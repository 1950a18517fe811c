// SPDX-License-Identifier: Apache-2.0

// Package routes is the table that joins the contract with the chain around the handlers: which action a request or a
// frame is authorised as, which token bucket it draws from, and which stages it passes. The rows are generated from the
// contract files; the types here say what a row means.
package routes

// BasePath is the prefix of every operation's path.
const BasePath = "/api/v1"

// BodyLimit names the configured size limit that holds for a request body.
type BodyLimit string

// The body limits. BodyNone means that the operation takes no body; a request that has one is refused.
const (
	BodyNone BodyLimit = "none"
	BodyJSON BodyLimit = "json"
	// BodyReport is what a browser sends by itself, in media types of its own.
	BodyReport BodyLimit = "report"
)

// Operation is one REST operation.
type Operation struct {
	// ID is the operationId of the contract, also the scope of idempotency keys.
	ID     string
	Method string
	// Path is the path below BasePath, with parameters in braces as http.ServeMux takes them.
	Path string
	// Module answers the operation.
	Module string
	// Action is the entry of the catalogue the request is authorised as.
	Action string
	// RateLimitClass is the token bucket the request draws from. It may differ from the class of the action.
	RateLimitClass string
	BodyLimit      BodyLimit
	// AuthorizedInBand marks operations whose frames are authorised one by one instead of the request.
	AuthorizedInBand bool
	// Transfer marks answers that are a stream and may take as long as a transfer.
	Transfer bool
	// RequiresIfMatch marks changes that must name the version they were made from.
	RequiresIfMatch bool
	// IgnoresIdempotencyKey marks writes that are repeatable by their own means, so the idempotency stage lets them pass.
	IgnoresIdempotencyKey bool
	// ErrorCodes are the public codes special to the operation. Each must be seen by a test.
	ErrorCodes []string
}

// Pattern is the pattern of the operation for http.ServeMux.
func (o Operation) Pattern() string { return o.Method + " " + BasePath + o.Path }

// Writes reports whether the operation may change anything.
func (o Operation) Writes() bool { return o.Method != "GET" }

// Op is one op that clients send on the gateway.
type Op struct {
	Name string
	// Action is the entry of the catalogue the frame is authorised as.
	Action string
}

// Event is one event type.
type Event struct {
	Type   string
	Module string
	// Ephemeral events are never stored.
	Ephemeral bool
	// Personal events are addressed to one principal. A type can have personal copies besides.
	Personal bool
	// ReceiveAction is the entry of the catalogue that decides, per delivery, who receives the event.
	ReceiveAction string
}

var (
	byID      = index(Operations, func(o Operation) string { return o.ID })
	byPattern = index(Operations, Operation.Pattern)
	byOp      = index(Ops, func(o Op) string { return o.Name })
	byType    = index(Events, func(e Event) string { return e.Type })
)

func index[T any](rows []T, key func(T) string) map[string]*T {
	m := make(map[string]*T, len(rows))
	for i := range rows {
		m[key(rows[i])] = &rows[i]
	}
	return m
}

// ByID finds an operation by its operationId; nil when there is none.
func ByID(id string) *Operation { return byID[id] }

// ByPattern finds an operation by the pattern that http.Request.Pattern holds after routing; nil when there is none.
func ByPattern(pattern string) *Operation { return byPattern[pattern] }

// OpByName finds an op; nil when clients send no such op.
func OpByName(name string) *Op { return byOp[name] }

// EventByType finds an event type; nil when there is none.
func EventByType(eventType string) *Event { return byType[eventType] }
