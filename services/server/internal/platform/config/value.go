// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"
)

type kind int

const (
	kindString kind = iota
	kindBool
	kindInt
	kindBytes
	kindFloat
	kindDuration
	kindList
	kindJSON
)

// classify finds out how the text of a key becomes its value.
func (k *Key) classify(t reflect.Type, format string) error {
	k.Type = format
	switch {
	case t == durationType:
		k.kind, k.Type = kindDuration, "duration"
	case t.Kind() == reflect.Bool:
		k.kind, k.Type = kindBool, "bool"
	case t.Kind() == reflect.Int || t.Kind() == reflect.Int64:
		k.kind, k.Type = kindInt, "int"
		if format == "bytes" {
			k.kind, k.Type = kindBytes, "bytes"
		}
	case t.Kind() == reflect.Float64:
		k.kind, k.Type = kindFloat, "float"
	case t.Kind() == reflect.String:
		k.kind = kindString
		if k.Enum != nil {
			k.Type = "enum"
		} else if format == "" {
			k.Type = "string"
		}
	case t.Kind() == reflect.Slice && scalarElement(t.Elem()):
		k.kind, k.elem, k.Type = kindList, format, "list"
		if format != "" {
			k.Type = "list of " + format
		}
		switch t.Elem() {
		case reflect.TypeFor[netip.Prefix]():
			k.Type = "list of CIDR"
		case durationType:
			k.Type = "list of duration"
		}
	case t.Kind() == reflect.Map || t.Kind() == reflect.Slice:
		k.kind, k.Type = kindJSON, map[bool]string{true: "map", false: "list of objects"}[t.Kind() == reflect.Map]
	default:
		return fmt.Errorf("type %s is not supported", t)
	}
	return nil
}

func scalarElement(t reflect.Type) bool {
	return t.Kind() == reflect.String || t == durationType || t == reflect.TypeFor[netip.Prefix]()
}

// set parses text, checks it and stores it. Its errors say what is allowed and never repeat
// the text.
func (k *Key) set(text string) error {
	if k.Required && text == "" {
		return errors.New("is required")
	}
	switch k.kind {
	case kindString:
		if err := k.checkString(text); err != nil {
			return err
		}
		k.target.SetString(text)
	case kindBool:
		if text != "true" && text != "false" && text != "" {
			return errors.New("must be true or false")
		}
		k.target.SetBool(text == "true")
	case kindInt, kindBytes, kindDuration:
		n, err := k.integer(text)
		if err != nil {
			return err
		}
		k.target.SetInt(n)
	case kindFloat:
		f, err := strconv.ParseFloat(text, 64)
		if text != "" && err != nil {
			return errors.New("must be a number")
		}
		if err := k.checkFloat(f); err != nil {
			return err
		}
		k.target.SetFloat(f)
	case kindList:
		return k.setList(text)
	case kindJSON:
		return k.setJSON(text)
	}
	return nil
}

// integer parses whole numbers, sizes and durations, which share their range check.
func (k *Key) integer(text string) (int64, error) {
	// Nothing stands for zero, which has to be allowed like any other value.
	var n int64
	if text != "" {
		var err error
		if n, err = k.parseInteger(text); err != nil {
			return 0, err
		}
	}
	low, _ := k.parseInteger(k.Min)
	high, _ := k.parseInteger(k.Max)
	if k.Min != "" && n < low || k.Max != "" && n > high {
		return 0, k.rangeError()
	}
	return n, nil
}

func (k *Key) parseInteger(text string) (int64, error) {
	switch k.kind {
	case kindDuration:
		d, err := time.ParseDuration(text)
		if err != nil {
			return 0, errors.New("must be a duration such as 90s, 10m or 336h")
		}
		return int64(d), nil
	case kindBytes:
		return parseBytes(text)
	default:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return 0, errors.New("must be a whole number")
		}
		return n, nil
	}
}

var units = []struct {
	suffix string
	factor int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}}

func parseBytes(text string) (int64, error) {
	factor := int64(1)
	for _, u := range units {
		if rest, ok := strings.CutSuffix(text, u.suffix); ok {
			text, factor = strings.TrimSpace(rest), u.factor
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > (1<<62)/factor {
		return 0, errors.New("must be a size in bytes, or with KiB, MiB or GiB")
	}
	return n * factor, nil
}

func (k *Key) checkFloat(f float64) error {
	low, lowErr := strconv.ParseFloat(k.Min, 64)
	high, highErr := strconv.ParseFloat(k.Max, 64)
	// The comparison is written so that a NaN is outside of every range.
	if lowErr == nil && !(f >= low) || highErr == nil && !(f <= high) {
		return k.rangeError()
	}
	return nil
}

func (k *Key) rangeError() error {
	switch {
	case k.Min == "":
		return fmt.Errorf("must be at most %s", k.Max)
	case k.Max == "":
		return fmt.Errorf("must be at least %s", k.Min)
	default:
		return fmt.Errorf("must be between %s and %s", k.Min, k.Max)
	}
}

func (k *Key) checkString(text string) error {
	if k.Enum != nil {
		for _, word := range k.Enum {
			if text == word {
				return nil
			}
		}
		return fmt.Errorf("must be one of %s", strings.Join(k.Enum, ", "))
	}
	if text == "" {
		return nil
	}
	return checkFormat(k.Type, text)
}

var (
	identifierForm = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)
	refForm        = regexp.MustCompile(`^(file:(/|<secrets\.dir>/)[^\x00]+|env:[A-Za-z_][A-Za-z0-9_]*)$`)
)

// checkFormat checks the text of one value that is not empty.
func checkFormat(format, text string) error {
	ok, want := true, ""
	switch format {
	case "path":
		ok = filepath.IsAbs(text) && filepath.Clean(text) == text && text != "/" && !strings.ContainsAny(text, "<\x00")
		want = "an absolute path in clean form, not /"
	case "ref":
		ok, want = refForm.MatchString(text), "file:<absolute path>, file:<secrets.dir>/<name> or env:<NAME>"
	case "origin":
		ok, want = isOrigin(text), "an origin: http or https, a host, perhaps a port, nothing else"
	case "address":
		_, err := splitAddress(text)
		ok, want = err == nil, "host:port"
	case "url":
		u, err := url.Parse(text)
		ok, want = err == nil && u.Scheme != "" && (u.Host != "" || u.Path != ""), "an absolute URL"
	case "identifier":
		ok, want = identifierForm.MatchString(text), "lower-case letters, digits and underscores"
	case "date":
		_, err := time.Parse(time.DateOnly, text)
		ok, want = err == nil, "a date as 2006-01-02"
	case "clock":
		_, err := time.Parse("15:04", text)
		ok, want = err == nil && len(text) == 5, "a time of day as 15:04"
	}
	if !ok {
		return errors.New("must be " + want)
	}
	return nil
}

func isOrigin(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" &&
		text == u.Scheme+"://"+u.Host && !strings.HasSuffix(u.Host, ":")
}

func (k *Key) setList(text string) error {
	items, err := listItems(text)
	if err != nil {
		return err
	}
	out := reflect.MakeSlice(k.target.Type(), 0, len(items))
	for i, item := range items {
		v := reflect.New(k.target.Type().Elem()).Elem()
		if err := k.setItem(v, item); err != nil {
			return fmt.Errorf("item %d %w", i+1, err)
		}
		out = reflect.Append(out, v)
	}
	k.target.Set(out)
	return nil
}

func (k *Key) setItem(v reflect.Value, item string) error {
	switch {
	case v.Type() == durationType:
		if item == "" {
			return errors.New("must not be empty")
		}
		d, err := (&Key{kind: kindDuration, Min: k.Min, Max: k.Max}).integer(item)
		if err != nil {
			return err
		}
		v.SetInt(d)
	case v.Type() == reflect.TypeFor[netip.Prefix]():
		p, err := parsePrefix(item)
		if err != nil {
			return err
		}
		v.Set(reflect.ValueOf(p))
	default:
		if item == "" {
			return errors.New("must not be empty")
		}
		if k.Enum != nil {
			return (&Key{Enum: k.Enum}).checkItem(v, item)
		}
		if err := checkFormat(k.elem, item); err != nil {
			return err
		}
		v.SetString(item)
	}
	return nil
}

func (k *Key) checkItem(v reflect.Value, item string) error {
	if err := k.checkString(item); err != nil {
		return err
	}
	v.SetString(item)
	return nil
}

// parsePrefix reads a network or a single address and refuses the network of everything,
// which would trust whoever asks.
func parsePrefix(text string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	if err != nil {
		addr, addrErr := netip.ParseAddr(text)
		if addrErr != nil || addr.Zone() != "" {
			return p, errors.New("must be a network such as 10.0.0.0/8")
		}
		p = netip.PrefixFrom(addr, addr.BitLen())
	}
	if p.Bits() == 0 {
		return p, errors.New("must not be the network of all addresses")
	}
	return p.Masked(), nil
}

// listItems splits at commas; items that hold one need the form of a JSON array.
func listItems(text string) ([]string, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, nil
	}
	if strings.HasPrefix(text, "[") {
		var items []string
		if err := json.Unmarshal([]byte(text), &items); err != nil {
			return nil, errors.New("must be a list of strings")
		}
		return items, nil
	}
	items := strings.Split(text, ",")
	for i := range items {
		items[i] = strings.TrimSpace(items[i])
	}
	return items, nil
}

func (k *Key) setJSON(text string) error {
	if text == "" {
		k.target.SetZero()
		return nil
	}
	v := reflect.New(k.target.Type())
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(v.Interface()); err != nil || d.More() {
		return fmt.Errorf("must be a %s in JSON with the documented members", k.Type)
	}
	k.target.Set(v.Elem())
	return nil
}

// text is the present value in the form of the environment.
func (k *Key) text() string {
	v := k.target
	switch k.kind {
	case kindDuration:
		return shortDuration(time.Duration(v.Int()))
	case kindJSON:
		if v.Len() == 0 {
			return ""
		}
		out, err := json.Marshal(v.Interface())
		if err != nil {
			return ""
		}
		return string(out)
	case kindList:
		items := make([]string, v.Len())
		for i := range items {
			if d, ok := v.Index(i).Interface().(time.Duration); ok {
				items[i] = shortDuration(d)
				continue
			}
			items[i] = fmt.Sprint(v.Index(i).Interface())
		}
		if joined := strings.Join(items, ","); strings.Count(joined, ",") == max(0, len(items)-1) {
			return joined
		}
		out, err := json.Marshal(items)
		if err != nil {
			return ""
		}
		return string(out)
	default:
		return fmt.Sprint(v.Interface())
	}
}

// shortDuration writes 10m instead of 10m0s.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
