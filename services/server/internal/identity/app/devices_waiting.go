// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"slices"
	"time"

	"github.com/OWNER/bothy/services/server/internal/identity"
	"github.com/OWNER/bothy/services/server/internal/identity/domain"
	"github.com/OWNER/bothy/services/server/internal/instance"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/auditing"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// Settings are those that this module brings.
func Settings() []instance.Setting {
	return []instance.Setting{
		{
			Key: instance.SettingDeviceApproval, Module: "identity", Type: "enum", Default: string(domain.ApprovalPassword),
			Values: domain.ApprovalPolicies(), Sensitive: true,
		},
		{Key: instance.SettingLocalEnabled, Module: "identity", Type: "bool", Default: true, Sensitive: true},
		{Key: instance.SettingPasskeyEnabled, Module: "identity", Type: "bool", Default: true, Sensitive: true},
	}
}

// waitInterval is how long a waiting device waits between two questions.
const waitInterval = 5 * time.Second

// WaitingDevice is what a login gives a device that somebody has to approve first.
type WaitingDevice struct {
	FlowID, DeviceID ids.ID
	VerificationCode string
	Interval         time.Duration
	ExpiresAt        time.Time
}

func waiting(d Device) *WaitingDevice {
	return &WaitingDevice{
		FlowID: d.FlowID, DeviceID: d.ID, VerificationCode: d.VerificationCode(), Interval: waitInterval, ExpiresAt: d.PendingUntil,
	}
}

// hold keeps the flow of a person who was proven on a device that waits, in the running unit.
func (s *Service) hold(ctx context.Context, flow Flow, device Device) error {
	if flow.ProvedAt.IsZero() {
		flow.ProvedAt = s.now(ctx)
	}
	flow.PrincipalID, flow.DeviceID, flow.ExpiresAt = device.PrincipalID, device.ID, device.PendingUntil
	if err := s.Store.HoldFlow(ctx, flow); err != nil {
		return err
	}
	if err := s.announceDevice(ctx, device, ""); err != nil {
		return err
	}
	return s.Audit.Allowed(ctx, auditing.Entry{
		Action: string(authorize.ActionAuthLoginComplete), ResourceKind: string(authorize.ResourcePrincipal), ResourceID: device.PrincipalID,
		Details: map[string]any{"driver": flow.Driver, "device_id": device.ID, "reason": flowWaiting},
	})
}

// makeRoom ends the oldest waiting devices of a person until one more may wait.
func (s *Service) makeRoom(ctx context.Context, principal ids.ID, living []Device) error {
	var waiting []Device
	for _, d := range living {
		if d.State == devicePending {
			waiting = append(waiting, d)
		}
	}
	if len(waiting) < domain.MaxPendingDevices {
		return nil
	}
	slices.SortFunc(waiting, func(a, b Device) int { return a.CreatedAt.Compare(b.CreatedAt) })
	oldest := waiting[:len(waiting)-domain.MaxPendingDevices+1]
	return s.endWaiting(ctx, principal, func(d Device) bool {
		return slices.ContainsFunc(oldest, func(o Device) bool { return o.ID == d.ID })
	})
}

// endWaiting ends devices that wait because they were overtaken.
func (s *Service) endWaiting(ctx context.Context, principal ids.ID, choose func(Device) bool) error {
	_, err := s.endDevices(ctx, principal, endBy{reason: reasonDeviceRevoked, by: bySystem}, choose)
	return err
}

// collect answers a device that asks whether it has been approved, and starts its session
// once it has.
func (s *Service) collect(ctx context.Context, flow Flow) (LoginResult, error) {
	device, found, err := s.Store.DeviceByID(ctx, flow.DeviceID)
	switch {
	case err != nil:
		return LoginResult{}, err
	case found && device.waits(s.now(ctx)):
		return LoginResult{Waiting: waiting(device)}, nil
	case found && device.State == deviceRevoked && device.RevokeReason == resolvedDenied:
		return LoginResult{}, errs.Forbidden("device_denied")
	case !found || device.State != deviceActive:
		return LoginResult{}, errFlowExpired()
	}
	var made issued
	var account Account
	err = s.Units.Do(ctx, func(ctx context.Context) error {
		won, err := s.Store.CollectFlow(ctx, flow.ID)
		if err != nil {
			return err
		}
		if !won {
			return errFlowExpired()
		}
		made, account, err = s.admit(ctx, flow, device)
		return err
	})
	if err != nil {
		return LoginResult{}, err
	}
	return s.result(ctx, made, &account)
}

// admit gives an active device that was let in by somebody else its session.
func (s *Service) admit(ctx context.Context, flow Flow, device Device) (issued, Account, error) {
	active, err := s.Store.SharePrincipal(ctx, device.PrincipalID)
	if err != nil {
		return issued{}, Account{}, err
	}
	locked, err := s.lockedDevice(ctx, device.PrincipalID, device.ID)
	switch {
	case errs.Is(err, errs.CodeNotFound), err == nil && (!active || locked.State != deviceActive):
		return issued{}, Account{}, errFlowExpired()
	case err != nil:
		return issued{}, Account{}, err
	}
	if err := s.Store.PickUpDevice(ctx, device.ID, s.now(ctx)); err != nil {
		return issued{}, Account{}, err
	}
	return s.open(ctx, flow, locked, flow.how())
}

// how is what a flow that was held remembers of the proof.
func (f Flow) how() provenBy {
	how := provenBy{amr: f.AMR}
	switch f.Driver {
	case DriverLocal:
		how.method = methodPassword
	case DriverPasskey:
		how.method = methodPasskey
	}
	return how
}

// The ways in which waiting ends, for the event and as the reason of the device's end.
const (
	resolvedApproved = "approved"
	resolvedDenied   = "denied"
	resolvedExpired  = "expired"
)

type devicePendingPayload struct {
	Device           pendingDevice `json:"device"`
	Principal        Entry         `json:"principal"`
	VerificationCode string        `json:"verification_code"`
	ExpiresAt        string        `json:"expires_at"`
	Resolved         string        `json:"resolved,omitempty"`
}

type pendingDevice struct {
	ID            ids.ID `json:"id"`
	Name          string `json:"name"`
	Platform      string `json:"platform"`
	Client        string `json:"client"`
	ClientVersion string `json:"client_version"`
	CreatedAt     string `json:"created_at"`
}

// announceDevice appends device.pending for the person and for every active owner, who can
// approve for her. resolved is empty while the device waits.
func (s *Service) announceDevice(ctx context.Context, d Device, resolved string) error {
	account, err := s.account(ctx, d.PrincipalID)
	if err != nil {
		return err
	}
	owners, err := s.Store.ActiveOwnerIDs(ctx)
	if err != nil {
		return err
	}
	payload := devicePendingPayload{
		Device: pendingDevice{
			ID: d.ID, Name: d.Name, Platform: d.Platform, Client: d.Client, ClientVersion: d.ClientVersion,
			CreatedAt: d.CreatedAt.UTC().Format(eventTime),
		},
		Principal: EntryOf(account), VerificationCode: d.VerificationCode(), ExpiresAt: d.PendingUntil.UTC().Format(eventTime), Resolved: resolved,
	}
	audience := append([]ids.ID{d.PrincipalID}, slices.DeleteFunc(owners, func(id ids.ID) bool { return id == d.PrincipalID })...)
	for _, to := range audience {
		if account.Status == identity.StatusDisabled && to == d.PrincipalID {
			continue
		}
		if err := s.Events.Append(ctx, deviceEvent(d, to, payload)); err != nil {
			return err
		}
	}
	return nil
}

// approval is the policy of the instance for the devices of its people.
func (s *Service) approval(ctx context.Context) (domain.ApprovalPolicy, error) {
	value, err := s.Settings.String(ctx, instance.SettingDeviceApproval)
	return domain.ApprovalPolicy(value), err
}

// asPerson makes the rest of a unit the act of the person it has proven.
func asPerson(ctx context.Context, device Device) context.Context {
	return actor.With(ctx, actor.Actor{ID: device.PrincipalID, Kind: actor.KindPerson, DeviceID: device.ID})
}
