// SPDX-License-Identifier: Apache-2.0

package domain

import "time"

// RotationStep is what is due for the keys of a purpose.
type RotationStep string

// The steps. A purpose without an active key gets one at once, whatever its age.
const (
	StepNone     RotationStep = "none"
	StepPrepare  RotationStep = "prepare"
	StepActivate RotationStep = "activate"
	StepReplace  RotationStep = "replace"
)

// Rotation says how long a key signs, and how long its successor is known before it does.
type Rotation struct{ Interval, Lead time.Duration }

// Step decides on the keys of one purpose. A next key signs once it was published for the lead;
// whoever made it early, the job or an owner, thereby decided when.
func (r Rotation) Step(keys []SigningKey, now time.Time) RotationStep {
	active, next := Current(keys)
	switch {
	case active == nil && next == nil:
		return StepReplace
	case active == nil, next != nil && !now.Before(next.CreatedAt.Add(r.Lead)):
		return StepActivate
	case next == nil && active.ActivatedAt != nil && !now.Before(active.ActivatedAt.Add(r.Interval-r.Lead)):
		return StepPrepare
	default:
		return StepNone
	}
}

// Current finds the active and the next key; nil where there is none.
func Current(keys []SigningKey) (active, next *SigningKey) {
	for i := range keys {
		switch keys[i].State {
		case KeyActive:
			active = &keys[i]
		case KeyNext:
			next = &keys[i]
		case KeyRetired:
		}
	}
	return active, next
}

// RotationMode is how an owner rotates a key.
type RotationMode string

// The modes.
const (
	RotateScheduled   RotationMode = "scheduled"
	RotateNow         RotationMode = "now"
	RotateCompromised RotationMode = "compromised"
)

// Leftover tells what a key store may forget at a moment: the private half of a key that
// retired a while ago, so that no process still signs with it.
func (k SigningKey) Leftover(now time.Time, cacheTTL time.Duration) bool {
	return k.State == KeyRetired && k.RetiredAt != nil && !now.Before(k.RetiredAt.Add(2*cacheTTL))
}
