// SPDX-License-Identifier: Apache-2.0

// Package app has the use cases of authz: the decision itself, the rights held in memory for
// reads and deliveries, the two hooks around a change of rights, and the acts on grants and
// groups.
//
// Rights in memory are entries, one per principal, right for a version of all rights. The
// log carries every change of an entry as access.changed, so an entry whose principal does
// not occur there stays right while versions pass. A read asks for the present version once
// and accepts an entry that is right for it; a write does the same inside its unit, notes the
// version, and the log refuses the unit when the version has moved on by the time its events
// get their positions. Places are one shared structure that the log keeps up to date.
//
//	database ──load──▶ entry v ──access.changed──▶ entry v' ──▶ Authorize, Admit, Scope
//	    ▲                 │
//	    └──── version not right, part expired, flush generation changed
package app
