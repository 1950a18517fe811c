// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
)

func TestAHookMadeHereIsRefusedByName(t *testing.T) {
	defer func() {
		if said := fmt.Sprint(recover()); !strings.Contains(said, "TestAHookMadeHereIsRefusedByName.func") {
			t.Errorf("the registry says %q", said)
		}
	}()
	txn.NewRegistry().SetHooks(txn.Hooks{Log: func(context.Context) error { return nil }})
}
