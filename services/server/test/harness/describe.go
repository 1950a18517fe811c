// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"strings"

	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
)

// describe names every fault of a validation, not only its sum.
func describe(err error) error {
	if err == nil {
		return nil
	}
	var lines []string
	for _, f := range errs.As(err).Fields {
		lines = append(lines, fmt.Sprintf("%s: %s %s", f.Pointer, f.Code, f.Message))
	}
	return fmt.Errorf("%w\n%s", err, strings.Join(lines, "\n"))
}
