// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/OWNER/bothy/services/server/internal/audit/adapters/postgres/sqlcgen"
	"github.com/OWNER/bothy/services/server/internal/audit/app"
	"github.com/OWNER/bothy/services/server/internal/audit/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/platform/pg"
)

// Event implements app.Store.
func (s *Store) Event(ctx context.Context, id ids.ID) (domain.Row, bool, error) {
	r, err := s.queries(ctx).EventGet(ctx, id)
	if pg.IsNoRows(err) {
		return domain.Row{}, false, nil
	}
	return toRow(&r), err == nil, err
}

// LastTrim implements app.Store.
func (s *Store) LastTrim(ctx context.Context) (domain.Row, bool, error) {
	list, err := s.Events(ctx, app.EventFilter{Action: domain.ActionTrim, Limit: 1})
	if err != nil || len(list) == 0 {
		return domain.Row{}, false, err
	}
	return list[0], true, nil
}

// Events implements app.Store. What leads is what narrows most and has an index.
func (s *Store) Events(ctx context.Context, f app.EventFilter) ([]domain.Row, error) {
	p := pageParams(f)
	q := s.queries(ctx)
	var list []sqlcgen.AuditEvent
	var err error
	switch {
	case p.ResourceID != nil:
		list, err = q.EventPageByResource(ctx, sqlcgen.EventPageByResourceParams(p))
	case p.Action != nil && p.ActorID == nil:
		list, err = q.EventPageByAction(ctx, sqlcgen.EventPageByActionParams(p))
	case p.ActorID != nil:
		list, err = q.EventPageByActor(ctx, sqlcgen.EventPageByActorParams(p))
	case p.ChannelID != nil:
		list, err = q.EventPageByChannel(ctx, sqlcgen.EventPageByChannelParams(p))
	case p.SpaceID != nil:
		list, err = q.EventPageBySpace(ctx, sqlcgen.EventPageBySpaceParams(p))
	case p.ActionPrefix != nil:
		list, err = s.byPrefix(ctx, p)
	default:
		list, err = q.EventPage(ctx, p)
	}
	if err != nil {
		return nil, err
	}
	out := make([]domain.Row, len(list))
	for i := range list {
		out[i] = toRow(&list[i])
	}
	return out, nil
}

// byPrefix joins the pages of every action whose name begins so, because one index gives the
// order of the list within one action alone.
func (s *Store) byPrefix(ctx context.Context, p sqlcgen.EventPageParams) ([]sqlcgen.AuditEvent, error) {
	q := s.queries(ctx)
	names, err := q.EventActions(ctx, *p.ActionPrefix, *p.ActionPrefix+string(utf8.MaxRune))
	if err != nil {
		return nil, err
	}
	var all []sqlcgen.AuditEvent
	for _, name := range names {
		p.Action = &name
		list, err := q.EventPageByAction(ctx, sqlcgen.EventPageByActionParams(p))
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	slices.SortFunc(all, func(a, b sqlcgen.AuditEvent) int { return cmp.Compare(b.Seq, a.Seq) })
	return all[:min(len(all), int(p.PageLimit))], nil
}

func pageParams(f app.EventFilter) sqlcgen.EventPageParams {
	return sqlcgen.EventPageParams{
		ResourceID: f.ResourceID.Ptr(), ActorID: f.ActorID.Ptr(), ChannelID: f.ChannelID.Ptr(), SpaceID: f.SpaceID.Ptr(),
		Action: text(f.Action), ActionPrefix: text(f.ActionPrefix), Outcome: text(f.Outcome), FromTime: moment(f.From),
		ToTime: moment(f.To), BeforeSeq: below(f.Before), PageLimit: int32(f.Limit),
	}
}

// below gives the number that a page ends before; the first page ends at the newest row.
func below(before int64) int64 {
	if before == 0 {
		return math.MaxInt64
	}
	return before
}

func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
