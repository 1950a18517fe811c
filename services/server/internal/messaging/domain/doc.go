// SPDX-License-Identifier: Apache-2.0

// Package domain has the rules of messages: what a content may be, how names typed in it
// become IDs, what an edit changes and what a deleted message leaves behind. It knows neither
// a database nor a request, and it does not parse Markdown; it decides on what a parser found.
package domain
