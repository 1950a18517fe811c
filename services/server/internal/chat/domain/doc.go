// SPDX-License-Identifier: Apache-2.0

// Package domain has the rules of spaces, channels and threads: names, order, who answers in
// a channel, and how a change moves versions. It knows neither a database nor a request.
package domain
