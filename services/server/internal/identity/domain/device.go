// SPDX-License-Identifier: Apache-2.0

package domain

// DeviceApproval is how a device became active.
type DeviceApproval string

// The ways a device of this version becomes active.
const (
	// ApprovedFirst: the person had no active device.
	ApprovedFirst DeviceApproval = "first"
	// ApprovedPolicy: the instance asks for no approval.
	ApprovedPolicy DeviceApproval = "policy"
	// ApprovedEnrollment: the device redeemed an enrollment code.
	ApprovedEnrollment DeviceApproval = "enrollment"
)

// DeviceOutcome is what a login does about the device of its key.
type DeviceOutcome int

// The outcomes.
const (
	// DeviceUse: the key belongs to an active device of this person.
	DeviceUse DeviceOutcome = iota
	// DeviceCreate: a new device is made, active at once.
	DeviceCreate
	// DeviceForeign: the key belongs to a device of somebody else.
	DeviceForeign
	// DeviceLimit: the person has as many devices as allowed.
	DeviceLimit
)

// KeyOwnership tells whose device the key of the proof belongs to.
type KeyOwnership int

// The ownerships.
const (
	KeyUnknown KeyOwnership = iota
	KeyOwn
	KeyForeign
)

// DeviceStep decides about the device of a login. Enrollment says that the login redeems a
// code; living is the number of the person's devices that are not revoked.
func DeviceStep(key KeyOwnership, enrollment bool, living, limit int) (DeviceOutcome, DeviceApproval) {
	switch {
	case key == KeyOwn:
		return DeviceUse, ""
	case key == KeyForeign:
		return DeviceForeign, ""
	case living >= limit:
		return DeviceLimit, ""
	case enrollment:
		return DeviceCreate, ApprovedEnrollment
	case living == 0:
		return DeviceCreate, ApprovedFirst
	default:
		return DeviceCreate, ApprovedPolicy
	}
}
