// SPDX-License-Identifier: Apache-2.0

package pg

import (
	"context"
	"fmt"
)

// Identity tells one history of a cluster from another: a restored copy continues on
// another timeline, and another cluster has another identifier.
type Identity struct {
	SystemIdentifier int64
	Timeline         int32
}

// ReadIdentity asks the server who it is; the role of the server may.
func ReadIdentity(ctx context.Context, q DBTX) (Identity, error) {
	var id Identity
	err := q.QueryRow(ctx, "SELECT s.system_identifier, c.timeline_id FROM pg_control_system() s, pg_control_checkpoint() c").
		Scan(&id.SystemIdentifier, &id.Timeline)
	if err != nil {
		return Identity{}, fmt.Errorf("read the identity of the cluster: %w", err)
	}
	return id, nil
}
