// SPDX-License-Identifier: Apache-2.0

package txn

import "context"

type afterKey struct{}

// AfterCommit runs fn once the outermost unit of the context is committed and its end has
// been waited for; without a unit it runs at once. A unit that is rolled back or repeated
// forgets what its attempt asked for.
//
// It is for telling parts of this process that they should look again. It is no place for
// work that must happen: the process may end before it.
func AfterCommit(ctx context.Context, fn func()) {
	u := Current(ctx)
	if u == nil {
		fn()
		return
	}
	list, _ := u.Value(afterKey{}).([]func())
	u.SetValue(afterKey{}, append(list, fn))
}

// Committed runs what AfterCommit collected. Only implementations of UnitOfWork call it.
func Committed(u Unit) {
	list, _ := u.Value(afterKey{}).([]func())
	for _, fn := range list {
		fn()
	}
}
