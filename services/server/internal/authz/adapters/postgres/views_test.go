// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"slices"
	"testing"

	"github.com/OWNER/bothy/services/server/internal/authz"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

func TestAViewReadsWhatBothMayRead(t *testing.T) {
	t.Parallel()
	b := setup(t)
	talk := ids.New()
	b.places.channels = append(b.places.channels, authz.ChannelState{ID: talk, Direct: true, Inherits: true, Participants: []ids.ID{b.ana, b.ben}})
	b.give(b.ana, b.space, "space", "manage")
	viewed := func(by ids.ID) context.Context {
		return actor.With(context.Background(), actor.Actor{ID: b.ana, Kind: actor.KindPerson, SessionID: ids.New(), ViewedBy: by})
	}
	ctx := viewed(b.owner)
	message := func(channel ids.ID) authorize.Resource { return authorize.Message(ids.New(), channel, b.ana) }
	wantCode(t, b.svc.Authorize(b.as(b.ana), authorize.ActionMessageRead, message(talk)), "", "")
	wantCode(t, b.svc.Authorize(ctx, authorize.ActionMessageRead, message(b.open)), "", "")
	wantCode(t, b.svc.Authorize(ctx, authorize.ActionMessageRead, message(talk)), errs.CodeNotFound, "")
	wantCode(t, b.svc.Authorize(ctx, authorize.ActionMessageRead, message(b.closed)), "", "")
	wantCode(t, b.svc.Authorize(ctx, authorize.ActionMessageCreate, authorize.Thread(ids.New(), b.open)), errs.CodeForbidden, "view_as_read_only")
	wantCode(t, b.svc.Authorize(ctx, authorize.ActionSelfRead, authorize.Self(b.ana)), "", "")
	wantCode(t, b.svc.Authorize(viewed(b.ben), authorize.ActionMessageRead, message(b.open)), errs.CodeUnauthenticated, "")
	scope, err := b.svc.Scope(ctx, authorize.ActionChannelRead)
	if err != nil || scope.All || slices.Contains(scope.Channels, talk) || !slices.Contains(scope.Channels, b.open) {
		t.Errorf("scope %+v, %v", scope, err)
	}
	if _, err := b.svc.Scope(ctx, authorize.ActionSyncSnapshotRead); errs.As(err).Reason != "view_as_read_only" {
		t.Errorf("a view lists what is personal: %v", err)
	}
}
