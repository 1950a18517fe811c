// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"slices"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// Billing says who pays for what an agent does.
type Billing struct {
	BillingMode string
	// HolderID is the person whose plan is spent, exactly with the mode personal.
	HolderID ids.ID
}

func (b Billing) check(faults *errs.Validation) {
	if !slices.Contains(BillingModes(), b.BillingMode) {
		faults.Addf("/billing_mode", "invalid", "Expected one of %v.", BillingModes())
	}
	switch personal := b.BillingMode == BillingPersonal; {
	case personal && b.HolderID.IsZero():
		faults.Add("/credential_holder_id", "required", "Name the person whose plan the agent spends.")
	case !personal && !b.HolderID.IsZero():
		faults.Add("/credential_holder_id", "not_allowed", "Only an agent on a person's own plan has a holder.")
	}
}

// Bill changes who pays; changed is false when it is the same already.
func (a *Agent) Bill(b Billing, now time.Time) (changed bool, err error) {
	var faults errs.Validation
	b.check(&faults)
	if err := faults.Err(); err != nil || a.Billing == b {
		return false, err
	}
	a.Billing = b
	a.Changed(now)
	return true, nil
}

// ReasonNotPersonal refuses a holder for an agent that spends nobody's own plan.
const ReasonNotPersonal = "not_personal"

// HandOver makes another person the holder.
func (a *Agent) HandOver(holder ids.ID, now time.Time) (changed bool, err error) {
	if a.BillingMode != BillingPersonal {
		return false, errs.Conflict(ReasonNotPersonal, "The agent spends nobody's own plan. Change its billing mode first.")
	}
	return a.Bill(Billing{BillingMode: BillingPersonal, HolderID: holder}, now)
}

// Equip changes what the runtime of the agent may touch.
func (a *Agent) Equip(toolClass string, now time.Time) (changed bool, err error) {
	if ToolRank(toolClass) < 0 {
		return false, errs.Invalid("/tool_class", "invalid", "Expected chat, sandboxed or host.")
	}
	if a.ToolClass == toolClass {
		return false, nil
	}
	a.ToolClass = toolClass
	a.Changed(now)
	return true, nil
}
