// SPDX-License-Identifier: Apache-2.0

package app

import (
	"github.com/OWNER/bothy/services/server/internal/gateway/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// frame is one message on its way out, encoded once for all its recipients.
type frame struct {
	bytes []byte
	// durable frames must arrive; others are dropped when there is no room.
	durable bool
	// run is set for progress of a run, so that a dropped one is made up for.
	run ids.ID
}

// queue is what waits for one connection. The owner's lock guards it.
type queue struct {
	frames    []frame
	bytes     int
	maxFrames int
	maxBytes  int
}

// pushed says what became of a frame.
type pushed int

const (
	taken pushed = iota
	dropped
	overflow
)

func (q *queue) push(f frame) pushed {
	if len(q.frames) >= q.maxFrames || q.bytes+len(f.bytes) > q.maxBytes && len(q.frames) > 0 {
		if f.durable {
			return overflow
		}
		return dropped
	}
	q.frames = append(q.frames, f)
	q.bytes += len(f.bytes)
	return taken
}

func (q *queue) pop() (frame, bool) {
	if len(q.frames) == 0 {
		return frame{}, false
	}
	f := q.frames[0]
	q.frames[0] = frame{}
	q.frames = q.frames[1:]
	q.bytes -= len(f.bytes)
	if len(q.frames) == 0 {
		// An idle connection keeps no memory of a busy moment.
		q.frames = nil
	}
	return f, true
}

func (q *queue) clear() { q.frames, q.bytes = nil, 0 }

var tooSlow = domain.Close{Code: domain.CloseTooSlow}
