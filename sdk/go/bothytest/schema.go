// SPDX-License-Identifier: Apache-2.0

package bothytest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
)

// schema is the part of a frame's JSON Schema that is checked: which members must be there. Unknown members and wrong
// types are found by decoding into the generated types.
type schema struct {
	Required []string `json:"required"`
}

// schemas reads the frames of the contract, when it lies beside the module.
var schemas = sync.OnceValue(func() map[string]schema {
	out := map[string]schema{}
	_, here, _, ok := runtime.Caller(0)
	if !ok {
		return out
	}
	const suffix = ".json"
	files, err := filepath.Glob(filepath.Join(filepath.Dir(here), "../../../docs/api/schemas/ops/*"+suffix))
	if err != nil {
		return out
	}
	for _, file := range files {
		var s schema
		text, err := os.ReadFile(file)
		if err == nil && json.Unmarshal(text, &s) == nil {
			name := filepath.Base(file)
			out[name[:len(name)-len(suffix)]] = s
		}
	}
	return out
})

// complete says which member of a frame is missing.
func complete(f frame) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(f.D, &members); err != nil {
		return fmt.Errorf("d is no object: %w", err)
	}
	for _, name := range schemas()[f.Op].Required {
		if _, ok := members[name]; !ok {
			return fmt.Errorf("member %s is missing", name)
		}
	}
	return nil
}
