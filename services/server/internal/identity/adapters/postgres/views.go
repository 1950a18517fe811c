// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"time"

	"github.com/OWNER/bothy/services/server/internal/identity/adapters/postgres/sqlcgen"
	"github.com/OWNER/bothy/services/server/internal/identity/app"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// InsertView implements app.ViewSessions.
func (s *Store) InsertView(ctx context.Context, n app.Session, viewer ids.ID, at time.Time) error {
	return write(ctx).SessionInsertView(ctx, sqlcgen.SessionInsertViewParams{
		ID: n.ID, PrincipalID: n.PrincipalID, DeviceID: n.DeviceID.Ptr(), ParentID: n.ParentID.Ptr(), Driver: n.Driver, Amr: n.AMR,
		AuthTime: n.AuthTime, Viewer: viewer, Jkt: n.JKT[:], At: at, ExpiresAt: n.ExpiresAt,
	})
}

// HasView implements app.ViewSessions.
func (s *Store) HasView(ctx context.Context, parent ids.ID, at time.Time) (bool, error) {
	has, err := s.read(ctx).SessionViews(ctx, parent, at)
	return has, failed(err, "look for a view")
}

// Viewer implements app.ViewSessions.
func (s *Store) Viewer(ctx context.Context, session ids.ID, at time.Time) (ids.ID, bool, error) {
	viewer, err := s.read(ctx).SessionViewer(ctx, session, at)
	found, err := absent(err, "find who looks")
	return viewer, found, err
}
