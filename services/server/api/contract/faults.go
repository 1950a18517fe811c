// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
)

// leaves walks down to the faults themselves. A member that may be null is written as a choice in the schema; the
// branch for null is then left out, because "must be null" helps nobody.
func leaves(all *errs.Validation, e *jsonschema.ValidationError, prefix string) {
	if len(e.Causes) == 0 {
		add(all, e, prefix)
		return
	}
	_, choice := e.ErrorKind.(*kind.OneOf)
	for _, c := range e.Causes {
		if t, ok := c.ErrorKind.(*kind.Type); ok && choice && slices.Equal(t.Want, []string{"null"}) {
			continue
		}
		leaves(all, c, prefix)
	}
}

func add(all *errs.Validation, e *jsonschema.ValidationError, prefix string) {
	at := prefix + pointer(e.InstanceLocation)
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		for _, m := range k.Missing {
			all.Add(at+pointer([]string{m}), "required", "The member is required.")
		}
	case *kind.AdditionalProperties:
		for _, m := range k.Properties {
			all.Add(at+pointer([]string{m}), "unknown_member", "There is no such member.")
		}
	case *kind.Type:
		all.Addf(at, "wrong_type", "The value must be %s.", strings.Join(k.Want, " or "))
	case *kind.Enum:
		all.Addf(at, "not_allowed", "The value must be one of %s.", list(k.Want))
	case *kind.MinLength:
		all.Addf(at, "too_short", "The text must have at least %d characters.", k.Want)
	case *kind.MaxLength:
		all.Addf(at, "too_long", "The text must have at most %d characters, it has %d.", k.Want, k.Got)
	case *kind.MinItems:
		all.Addf(at, "too_few", "The list needs at least %d entries.", k.Want)
	case *kind.MaxItems:
		all.Addf(at, "too_many", "The list may have at most %d entries.", k.Want)
	case *kind.Minimum:
		all.Addf(at, "too_small", "The value must be at least %s.", k.Want.RatString())
	case *kind.Maximum:
		all.Addf(at, "too_large", "The value must be at most %s.", k.Want.RatString())
	case *kind.Format:
		all.Addf(at, "malformed", "The value must be a %s.", k.Want)
	case *kind.Pattern:
		all.Add(at, "malformed", "The value has the wrong form.")
	default:
		all.Add(at, "invalid", "The value does not fit the contract.")
	}
}

func pointer(tokens []string) string {
	var b strings.Builder
	for _, t := range tokens {
		b.WriteByte('/')
		b.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(t))
	}
	return b.String()
}

func list(values []any) string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = fmt.Sprint(v)
	}
	return strings.Join(words, ", ")
}
