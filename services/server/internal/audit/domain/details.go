// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

const (
	maxDetailsBytes = 4 << 10
	maxListEntries  = 50
	// invalidValue stands where a value did not have an allowed form.
	invalidValue = "invalid_value"
	// CountKey is allowed for every action: it says how often a denial was repeated.
	CountKey = "count"
)

// codeForm is a short code: no text a person wrote fits into it.
var codeForm = regexp.MustCompile(`^[a-z0-9][a-z0-9_.:-]{0,63}$`)

// EncodeDetails writes details in JSON. Only IDs, whole numbers, booleans, times and codes go
// in, and lists of them, under keys the action allows: so no name, text or secret can. What
// does not fit is replaced or left out, and named in faults.
func EncodeDetails(allowed []string, details map[string]any) (raw json.RawMessage, faults []string) {
	out := make(map[string]any, len(details))
	for key, v := range details {
		if key != CountKey && !slices.Contains(allowed, key) {
			faults = append(faults, key+": not allowed for the action")
			continue
		}
		value, ok := detail(v)
		if !ok {
			faults = append(faults, fmt.Sprintf("%s: a %T that is no ID, whole number, boolean, time or code", key, v))
			value = invalidValue
		}
		out[key] = value
	}
	raw, err := json.Marshal(out)
	if err != nil || len(raw) > maxDetailsBytes {
		faults = append(faults, "too large")
		return json.RawMessage(`{"` + CountKey + `":0}`), faults
	}
	slices.Sort(faults)
	return raw, faults
}

func detail(v any) (any, bool) {
	switch x := v.(type) {
	case ids.ID:
		return x.String(), true
	case bool:
		return x, true
	case time.Time:
		return x.UTC().Format(TimeLayout), true
	case fmt.Stringer:
		return detailCode(x.String())
	}
	r := reflect.ValueOf(v)
	switch r.Kind() {
	case reflect.String:
		return detailCode(r.String())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return detailInt(r.Int())
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return detailInt(int64(r.Uint()))
	case reflect.Slice:
		return detailList(r)
	default:
		return nil, false
	}
}

func detailCode(s string) (any, bool) {
	if _, err := ids.Parse(s); err == nil {
		return s, true
	}
	return s, codeForm.MatchString(s)
}

// detailInt keeps numbers that every reader of JSON holds exactly.
func detailInt(n int64) (any, bool) {
	const exact = 1 << 53
	return n, n >= -exact && n <= exact && n != math.MinInt64
}

func detailList(r reflect.Value) (any, bool) {
	if r.Len() > maxListEntries {
		return nil, false
	}
	out := make([]any, r.Len())
	for i := range out {
		v, ok := detail(r.Index(i).Interface())
		if _, nested := v.([]any); !ok || nested {
			return nil, false
		}
		out[i] = v
	}
	return out, true
}
