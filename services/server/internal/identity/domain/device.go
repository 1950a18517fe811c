// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// DeviceApproval is how a device became active.
type DeviceApproval string

// The ways in which a device becomes active.
const (
	// ApprovedFirst: the person had no active device.
	ApprovedFirst DeviceApproval = "first"
	// ApprovedPolicy: the instance asks for no approval of such a login.
	ApprovedPolicy DeviceApproval = "policy"
	// ApprovedApproval: an active device of the person, or an owner, has approved it.
	ApprovedApproval DeviceApproval = "approval"
	// ApprovedPairing: it was let in from an active device of the person.
	ApprovedPairing DeviceApproval = "pairing"
	// ApprovedEnrollment: the device redeemed an enrollment code.
	ApprovedEnrollment DeviceApproval = "enrollment"
)

// ApprovalPolicy is when a further device of a person waits for approval.
type ApprovalPolicy string

// The policies.
const (
	// ApprovalOff: never.
	ApprovalOff ApprovalPolicy = "off"
	// ApprovalPassword: after a login with a single factor that can be given away.
	ApprovalPassword ApprovalPolicy = "password"
	// ApprovalRequired: always.
	ApprovalRequired ApprovalPolicy = "required"
)

// ApprovalPolicies are the values of the setting.
func ApprovalPolicies() []string {
	return []string{string(ApprovalOff), string(ApprovalPassword), string(ApprovalRequired)}
}

// The drivers that the policy tells apart.
const (
	driverLocal = "local"
	driverOIDC  = "oidc"
)

// asks reports whether a login waits under the policy. A provider that says the person has
// shown a second factor is believed as far as its driver hands that on among the methods.
func (p ApprovalPolicy) asks(driver string, amr []string) bool {
	switch p {
	case ApprovalOff:
		return false
	case ApprovalRequired:
		return true
	default:
		strong := slices.Contains(amr, "mfa") || slices.Contains(amr, "hwk")
		return driver == driverLocal || driver == driverOIDC && !strong
	}
}

// MaxPendingDevices is how many devices of a person may wait at a time; one more ends the
// oldest.
const MaxPendingDevices = 5

// DeviceOutcome is what a login does about the device of its key.
type DeviceOutcome int

// The outcomes.
const (
	// DeviceUse: the key belongs to an active device of this person.
	DeviceUse DeviceOutcome = iota
	// DeviceCreate: a new device is made, active at once.
	DeviceCreate
	// DeviceWait: a new device is made and waits for approval.
	DeviceWait
	// DeviceForeign: the key belongs to a device of somebody else.
	DeviceForeign
	// DeviceLimit: the person has as many devices as allowed.
	DeviceLimit
)

// KeyOwnership tells whose device the key of the proof belongs to.
type KeyOwnership int

// The ownerships. A device that waits owns no key: a further login begins waiting anew.
const (
	KeyUnknown KeyOwnership = iota
	KeyOwn
	KeyForeign
)

// DeviceLogin is what the decision about the device of a login depends on.
type DeviceLogin struct {
	Key KeyOwnership
	// Enrollment says that the login redeems a code.
	Enrollment bool
	Driver     string
	AMR        []string
	Policy     ApprovalPolicy
	// Active is the number of the person's active devices, Living that of those not revoked.
	Active, Living, Limit int
}

// DeviceStep decides about the device of a login.
func DeviceStep(l DeviceLogin) (DeviceOutcome, DeviceApproval) {
	switch {
	case l.Key == KeyOwn:
		return DeviceUse, ""
	case l.Key == KeyForeign:
		return DeviceForeign, ""
	case l.Living >= l.Limit:
		return DeviceLimit, ""
	case l.Enrollment:
		return DeviceCreate, ApprovedEnrollment
	case l.Active == 0:
		return DeviceCreate, ApprovedFirst
	case l.Policy.asks(l.Driver, l.AMR):
		return DeviceWait, ""
	default:
		return DeviceCreate, ApprovedPolicy
	}
}

// VerificationCode is what a waiting device shows and its approver compares: six digits made
// from the login and the key of the device, so that no two waiting devices are mistaken.
func VerificationCode(flow ids.ID, key Thumbprint) string {
	const digits = 1_000_000
	sum := sha256.Sum256(append(flow[:], key[:]...))
	return fmt.Sprintf("%06d", binary.BigEndian.Uint64(sum[:8])%digits)
}
