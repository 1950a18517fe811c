// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"os"
	"testing"
)

const referenceFile = "../../../../docs/operations/configuration.gen.md"

// The page that operators read is the schema that the program checks against.
func TestConfigurationReferenceIsUpToDate(t *testing.T) {
	var got bytes.Buffer
	if err := ConfigReference(&got); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(referenceFile, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(referenceFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Error("docs/operations/configuration.gen.md is not what the schema gives; run the test with -update")
	}
}
