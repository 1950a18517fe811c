// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/OWNER/bothy/services/server/internal/authz/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/auditing"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/eventlog"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/textcheck"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
)

// The kinds of subjects of grants.
const (
	SubjectPrincipal = "principal"
	SubjectGroup     = "group"
)

const maxNote = 200

// NewGrant is what somebody wants to give.
type NewGrant struct {
	SubjectKind string
	SubjectID   ids.ID
	Target      domain.Target
	Level       string
	// Capabilities are words; unknown ones are faults.
	Capabilities []string
	// ExpiresAt is zero for a grant that does not end.
	ExpiresAt time.Time
	Note      string
	// Replaces is the present grant of the same subject on the same target; zero for none.
	Replaces ids.ID
}

// CreateGrant gives a right, or puts another in the place of an existing one. It returns the
// grant and the version of all rights from which on it counts.
func (s *Service) CreateGrant(ctx context.Context, in NewGrant) (GrantRow, int64, error) {
	g, err := s.newGrant(ctx, in)
	if err != nil {
		return GrantRow{}, 0, err
	}
	var change *rightsChange
	err = s.units.Do(ctx, func(ctx context.Context) error {
		change = stateOf(ctx).changing
		if err := s.mayGive(ctx, authorize.ActionGrantCreate, g.Grant, targetResource(g.Target)); err != nil {
			return err
		}
		if err := s.checkSubject(ctx, g); err != nil {
			return err
		}
		replaced, err := s.replaced(ctx, g, in.Replaces)
		if err != nil {
			return err
		}
		if err := s.affectSubject(ctx, g.SubjectKind, g.SubjectID); err != nil {
			return err
		}
		g.ID, g.CreatedAt, g.CreatedBy = ids.NewAt(s.now(ctx)), s.now(ctx), actor.From(ctx).ID
		g.ReminderStage = domain.ReminderStage(s.cfg.ReminderBefore, s.now(ctx), g.ExpiresAt)
		return s.put(ctx, g, replaced)
	}, txn.WithRightsChange(txn.RightsChange{Action: string(authorize.ActionGrantCreate)}))
	if err != nil {
		return GrantRow{}, 0, err
	}
	return change.asGiven(g), change.version, nil
}

func (s *Service) newGrant(ctx context.Context, in NewGrant) (GrantRow, error) {
	var v errs.Validation
	g := GrantRow{SubjectKind: in.SubjectKind, SubjectID: in.SubjectID, Note: in.Note}
	g.Target, g.ExpiresAt = in.Target, in.ExpiresAt
	var ok bool
	if g.Level, ok = domain.ParseLevel(in.Level); !ok {
		v.Add("/level", "unknown", "The level is read, write, trigger or manage.")
	}
	for i, word := range in.Capabilities {
		c, known := domain.ParseCap(word)
		if !known {
			v.Addf(fmt.Sprintf("/capabilities/%d", i), "unknown", "There is no capability %q.", word)
		}
		g.Caps |= c
	}
	if in.SubjectKind != SubjectPrincipal && in.SubjectKind != SubjectGroup {
		v.Add("/subject/kind", "unknown", "A subject is a principal or a group.")
	}
	switch in.Target.Kind {
	case domain.TargetInstance:
		if !in.Target.ID.IsZero() {
			v.Add("/target/id", "not_allowed", "The instance has no ID here.")
		}
	case domain.TargetSpace, domain.TargetChannel:
		if in.Target.ID.IsZero() {
			v.Add("/target/id", "required", "A space or channel is named by its ID.")
		}
	default:
		v.Add("/target/kind", "unknown", "A target is the instance, a space or a channel.")
	}
	if code := domain.CheckExpiry(s.now(ctx), in.ExpiresAt); code != "" {
		v.Add("/expires_at", code, "A grant ends between 5 minutes and 5 years from now.")
	}
	if utf8.RuneCountInString(in.Note) > maxNote {
		v.Addf("/note", "too_long", "A note has at most %d characters.", maxNote)
	}
	if err := textcheck.Name(in.Note); err != nil {
		v.Add("/note", err.Error(), "A note is one line of plain text.")
	}
	return g, v.Err()
}

func targetResource(t domain.Target) authorize.Resource {
	r := authorize.Resource{Kind: authorize.ResourceTarget, ID: t.ID}
	switch t.Kind {
	case domain.TargetSpace:
		r.SpaceID = t.ID
	case domain.TargetChannel:
		r.ChannelID = t.ID
	}
	return r
}

func grantResource(g GrantRow) authorize.Resource {
	r := targetResource(g.Target)
	r.Kind, r.ID = authorize.ResourceGrant, g.ID
	if g.SubjectKind == SubjectPrincipal {
		r.OwnerID = g.SubjectID
	}
	return r
}

// mayGive decides whether the actor may give or take the grant, and asks for a fresh proof of
// the person where it is strong.
func (s *Service) mayGive(ctx context.Context, action authorize.Action, g domain.Grant, r authorize.Resource) error {
	if err := s.mayHandle(ctx, action, g, r); err != nil {
		return err
	}
	ownToGiveUp := action == authorize.ActionGrantRevoke && r.OwnerID == actor.From(ctx).ID
	if !g.Strong() || ownToGiveUp {
		return nil
	}
	if err := s.requireStepUp(ctx); err != nil {
		s.recordDenial(ctx, action, r, reasonStepUpMissing)
		return err
	}
	return nil
}

// mayHandle decides about a grant with the bounds that no catalogue can express: nobody hands
// on more than she has.
func (s *Service) mayHandle(ctx context.Context, action authorize.Action, g domain.Grant, r authorize.Resource) error {
	if err := s.Authorize(ctx, action, r); err != nil {
		return err
	}
	a := actor.From(ctx)
	e, err := s.entry(ctx, a.ID)
	if err != nil {
		return sourceError(action, err)
	}
	p, err := s.locateFresh(ctx, r.ChannelID, r.SpaceID)
	if g.Target.Kind == domain.TargetInstance {
		p, err = place{kind: domain.TargetInstance, found: true}, nil
	}
	if err != nil {
		return sourceError(action, err)
	}
	if p.channel.Direct {
		return errs.Invalid("/target/id", "direct_channel", "Who takes part in a direct conversation is not a matter of grants.")
	}
	if r.OwnerID == a.ID && action == authorize.ActionGrantRevoke {
		return nil // Everybody may give up what is her own.
	}
	if reason := g.MayHandle(e.Owner, p.held(e)); reason != "" {
		s.recordDenial(ctx, action, r, reason)
		return denial(action, deny(errs.CodeForbidden, reason, p.held(e)))
	}
	return nil
}

func (s *Service) checkSubject(ctx context.Context, g GrantRow) error {
	missing := errs.Invalid("/subject/id", "not_found", "There is no such member or group.")
	if g.SubjectKind == SubjectGroup {
		_, err := s.store.Group(ctx, g.SubjectID)
		if errors.Is(err, ErrNoRow) {
			return missing
		}
		return err
	}
	found, err := s.principals.Principals(ctx, []ids.ID{g.SubjectID})
	if err != nil {
		return fmt.Errorf("read the subject: %w", err)
	}
	if len(found) == 0 {
		return missing
	}
	return nil
}

// replaced finds the grant that the new one takes the place of; nil for none.
func (s *Service) replaced(ctx context.Context, g GrantRow, replaces ids.ID) (*GrantRow, error) {
	old, err := s.store.GrantOf(ctx, g.SubjectKind, g.SubjectID, g.Target)
	switch {
	case errors.Is(err, ErrNoRow):
		if !replaces.IsZero() {
			return nil, errs.Invalid("/replaces", "not_found", "The subject has no such grant on this target.")
		}
		n, err := s.store.CountGrantsOn(ctx, g.Target)
		if err == nil && n >= s.cfg.MaxGrantsPerTarget {
			err = errs.Conflict("limit_reached", "This target has as many grants as it can have. Use a group.")
		}
		return nil, err
	case err != nil:
		return nil, err
	case replaces.IsZero():
		return nil, errs.Conflict("grant_exists", "The subject has a grant here. Replace it.").With("grant_id", old.ID)
	case replaces != old.ID:
		return nil, errs.Invalid("/replaces", "not_found", "The subject has no such grant on this target.")
	}
	// What is taken away obeys the same bounds as what is given.
	return &old, s.mayGive(ctx, authorize.ActionGrantCreate, old.Grant, targetResource(old.Target))
}

// affectSubject notes whose rights a grant of the subject changes.
func (s *Service) affectSubject(ctx context.Context, kind string, subject ids.ID) error {
	holders, err := s.holdersOf(ctx, kind, subject)
	if err != nil {
		return err
	}
	return s.Affect(ctx, holders...)
}

// put writes a grant, with its audit row and its event.
func (s *Service) put(ctx context.Context, g GrantRow, replaced *GrantRow) error {
	payload := grantChangedPayload{Change: "created", Grant: grantPayloadOf(g)}
	details := grantDetails(g)
	if !g.ExpiresAt.IsZero() {
		details["expires_at"] = g.ExpiresAt
	}
	if replaced != nil {
		if err := s.store.DeleteGrant(ctx, replaced.ID); err != nil {
			return fmt.Errorf("replace a grant: %w", err)
		}
		payload.Change, payload.Previous = "replaced", grantPayloadOf(*replaced)
		details["replaces"] = replaced.ID
	}
	if err := s.store.InsertGrant(ctx, g); err != nil {
		if errors.Is(err, ErrGrantExists) {
			return errs.Conflict("grant_exists", "The subject has a grant here. Replace it.")
		}
		return fmt.Errorf("store a grant: %w", err)
	}
	return s.tell(ctx, authorize.ActionGrantCreate, g, payload, details)
}

func grantDetails(g GrantRow) map[string]any {
	d := map[string]any{
		"subject_kind": g.SubjectKind, "subject_id": g.SubjectID, "target_kind": string(g.Target.Kind),
		"level": g.Level.String(), "capabilities": g.Caps.Names(),
	}
	if !g.Target.ID.IsZero() {
		d["target_id"] = g.Target.ID
	}
	return d
}

func (s *Service) tell(ctx context.Context, action authorize.Action, g GrantRow, payload grantChangedPayload, details map[string]any) error {
	at, err := s.eventPlace(ctx, g.Target)
	if err != nil {
		return err
	}
	if err := s.audit.Allowed(ctx, auditing.Entry{
		Action: string(action), ResourceKind: "grant", ResourceID: g.ID, SpaceID: at.SpaceID, ChannelID: at.ChannelID, Details: details,
	}); err != nil {
		return err
	}
	return s.events.Append(ctx, eventlog.Event{
		Type: EventGrantChanged, Place: at, Resource: eventlog.Resource{Type: "grant", ID: g.ID}, Payload: payload,
	})
}

func (s *Service) eventPlace(ctx context.Context, t domain.Target) (eventlog.Place, error) {
	switch t.Kind {
	case domain.TargetSpace:
		return eventlog.Place{SpaceID: t.ID}, nil
	case domain.TargetChannel:
		c, _, err := s.places.Channel(ctx, t.ID)
		if err != nil {
			return eventlog.Place{}, fmt.Errorf("find the space of a channel: %w", err)
		}
		return eventlog.Place{SpaceID: c.SpaceID, ChannelID: t.ID}, nil
	default:
		return eventlog.Place{}, nil
	}
}

// RevokeGrant takes a right away. A grant that is missing and one that is hidden are not
// found alike.
func (s *Service) RevokeGrant(ctx context.Context, id ids.ID) error {
	return s.units.Do(ctx, func(ctx context.Context) error {
		g, err := s.store.Grant(ctx, id)
		if errors.Is(err, ErrNoRow) {
			return s.missing(ctx, authorize.ActionGrantRevoke, id)
		}
		if err != nil {
			return err
		}
		if err := s.mayGive(ctx, authorize.ActionGrantRevoke, g.Grant, grantResource(g)); err != nil {
			return err
		}
		if err := s.affectSubject(ctx, g.SubjectKind, g.SubjectID); err != nil {
			return err
		}
		return s.remove(ctx, g)
	}, txn.WithRightsChange(txn.RightsChange{Action: string(authorize.ActionGrantRevoke)}))
}

func (s *Service) remove(ctx context.Context, g GrantRow) error {
	if err := s.store.DeleteGrant(ctx, g.ID); err != nil {
		if errors.Is(err, ErrNoRow) {
			return errs.NotFound()
		}
		return fmt.Errorf("delete a grant: %w", err)
	}
	return s.tell(ctx, authorize.ActionGrantRevoke, g, grantChangedPayload{Change: "revoked", Grant: grantPayloadOf(g)}, grantDetails(g))
}

// missing takes the steps of a hidden grant for one that is not there, and ends the same. The
// question is asked for the whole instance: of a place that does not exist an owner would see
// the grant and lack the level for it.
func (s *Service) missing(ctx context.Context, action authorize.Action, id ids.ID) error {
	if err := s.Authorize(ctx, action, authorize.Resource{Kind: authorize.ResourceGrant, ID: id}); err != nil {
		return err
	}
	return errs.NotFound()
}

// Grant reads one.
func (s *Service) Grant(ctx context.Context, id ids.ID) (GrantRow, error) {
	g, err := s.store.Grant(ctx, id)
	if errors.Is(err, ErrNoRow) {
		return GrantRow{}, s.missing(ctx, authorize.ActionGrantRead, id)
	}
	if err != nil {
		return GrantRow{}, err
	}
	return g, s.Authorize(ctx, authorize.ActionGrantRead, grantResource(g))
}

// GrantQuery says which grants to list: those of a subject or those on a target.
type GrantQuery struct {
	SubjectID ids.ID
	// Target is set when SubjectID is not.
	Target *domain.Target
	// Inherited adds the grants on the targets above.
	Inherited bool
	After     ids.ID
	Limit     int
}

// Grants lists grants by ID. more tells that there are further ones.
func (s *Service) Grants(ctx context.Context, q GrantQuery) (list []GrantRow, more bool, err error) {
	if (q.Target == nil) == q.SubjectID.IsZero() {
		return nil, false, errs.Invalid("query:target", "one_of", "Name either a subject or a target.")
	}
	if q.Target != nil {
		return s.grantsOn(ctx, q)
	}
	return s.grantsOf(ctx, q)
}

func (s *Service) grantsOn(ctx context.Context, q GrantQuery) ([]GrantRow, bool, error) {
	r := targetResource(*q.Target)
	if err := s.Authorize(ctx, authorize.ActionGrantRead, r); err != nil {
		return nil, false, err
	}
	targets := []domain.Target{*q.Target}
	if q.Inherited && q.Target.Kind != domain.TargetInstance {
		targets = append(targets, domain.Target{Kind: domain.TargetInstance})
		if q.Target.Kind == domain.TargetChannel {
			at, err := s.eventPlace(ctx, *q.Target)
			if err != nil {
				return nil, false, err
			}
			targets = append(targets, domain.Target{Kind: domain.TargetSpace, ID: at.SpaceID})
		}
	}
	list, err := s.store.GrantsOn(ctx, targets, q.After, q.Limit+1)
	if err != nil || len(list) <= q.Limit {
		return list, false, err
	}
	return list[:q.Limit], true, nil
}

// grantsOf lists the grants of a subject that the caller may see: her own, or those on
// targets whose members she manages.
func (s *Service) grantsOf(ctx context.Context, q GrantQuery) ([]GrantRow, bool, error) {
	if _, err := s.Scope(ctx, authorize.ActionGrantRead); err != nil {
		return nil, false, err
	}
	on, err := s.manageable(ctx, q.SubjectID)
	if err != nil {
		return nil, false, sourceError(authorize.ActionGrantRead, err)
	}
	list, err := s.store.GrantsOf(ctx, q.SubjectID, on, q.After, q.Limit+1)
	if err != nil || len(list) <= q.Limit {
		return list, false, err
	}
	return list[:q.Limit], true, nil
}

// manageable are the targets whose grants the caller may look at: all of a subject that is
// herself, otherwise those where she may give some. The store selects by them, so that neither
// the size of a page nor its cost tells of grants that are hidden.
func (s *Service) manageable(ctx context.Context, subject ids.ID) (Targets, error) {
	spec, _ := s.spec(authorize.ActionGrantRead)
	version, err := s.version(ctx)
	if err != nil {
		return Targets{}, err
	}
	e, err := s.entry(ctx, actor.From(ctx).ID)
	if err != nil || e.Owner || e.ID == subject {
		return Targets{All: err == nil}, err
	}
	st, err := s.structureFor(ctx, version)
	if err != nil {
		return Targets{}, err
	}
	out := Targets{Instance: anyOf(spec.AnyOf, e.Instance())}
	for _, id := range st.Spaces() {
		if anyOf(spec.AnyOf, e.Space(id)) {
			out.Places = append(out.Places, id)
		}
	}
	for _, id := range st.Channels() {
		if c, ok := st.Channel(id); ok && anyOf(spec.AnyOf, e.Channel(c)) {
			out.Places = append(out.Places, id)
		}
	}
	return out, nil
}
