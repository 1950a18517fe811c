// SPDX-License-Identifier: Apache-2.0

package pg_test

import "github.com/OWNER/bothy/services/server/internal/kernel/clock"

type clockSystem = clock.System
