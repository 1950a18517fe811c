// SPDX-License-Identifier: Apache-2.0

package domain

// Window is a range of numbers of a thread, both ends included. Numbers have no gaps, so a
// page is known before it is read.
type Window struct{ From, To int64 }

// Newest is the last page of a thread.
func Newest(last int64, limit int) Window { return Window{max(1, last-int64(limit)+1), last} }

// Before is the page that ends in front of a number.
func Before(seq int64, limit int) Window {
	return Window{max(1, seq-int64(limit)), seq - 1}
}

// After is the page that begins behind a number.
func After(seq int64, limit int) Window { return Window{max(1, seq+1), seq + int64(limit)} }

// Around is a page with a number in its middle.
func Around(seq int64, limit int) Window {
	from := max(1, seq-int64(limit/2))
	return Window{from, from + int64(limit) - 1}
}
