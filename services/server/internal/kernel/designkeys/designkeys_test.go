// SPDX-License-Identifier: Apache-2.0

package designkeys_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/OWNER/bothy/services/server/internal/kernel/designkeys"
)

func TestEveryAccentIsAColourOfTheDesign(t *testing.T) {
	raw, err := os.ReadFile("../../../../../design/tokens/category.json")
	if err != nil {
		t.Fatal(err)
	}
	var colours map[string]json.RawMessage
	if err := json.Unmarshal(raw, &colours); err != nil {
		t.Fatal(err)
	}
	for _, name := range designkeys.Accents() {
		if colours[name] == nil {
			t.Errorf("the design has no %s", name)
		}
	}
	if !designkeys.IsAccent(designkeys.DefaultAccent) || designkeys.IsAccent("ember") {
		t.Error("the default must be an accent, and the colour of danger none")
	}
}
