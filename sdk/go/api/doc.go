// SPDX-License-Identifier: Apache-2.0

// Package api has the types of the REST API and of the gateway frames as plain Go types. IDs are strings. The package
// is generated from the contract and talks to nobody; see the OpenAPI and AsyncAPI documents for what each type means.
package api
