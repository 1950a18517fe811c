// SPDX-License-Identifier: Apache-2.0

package jsonguard

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"
)

func TestFaults(t *testing.T) {
	many := make([]string, 40)
	for i := range many {
		many[i] = fmt.Sprintf(`"k%d":1`, i)
	}
	for name, c := range map[string]struct {
		text string
		want error
	}{
		"fine":                     {` {"a":[1,-2.5e+3,true,null,"x\n\u00e9\ud83d\ude00"],"b":{"a":1}} `, nil},
		"many names":               {"{" + strings.Join(many, ",") + "}", nil},
		"duplicate":                {`{"a":1,"b":2,"a":3}`, ErrDuplicate},
		"duplicate by escape":      {`{"a":1,"\u0061":3}`, ErrDuplicate},
		"duplicate among many":     {"{" + strings.Join(append(many, many[3]), ",") + "}", ErrDuplicate},
		"same name in two objects": {`[{"a":1},{"a":{"a":1}}]`, nil},
		"bytes":                    {"\"\xff\"", ErrUTF8},
		"lone surrogate":           {`"\ud83d"`, ErrSurrogate},
		"reversed surrogates":      {`"\ude00\ud83d"`, ErrSurrogate},
		"NUL":                      {`"\u0000"`, ErrNUL},
		"raw control":              {"\"\x01\"", ErrSyntax},
		"depth":                    {`[[[[1]]]]`, nil},
		"too deep":                 {`[[[[[1]]]]]`, ErrDepth},
		"two values":               {`1 2`, ErrSyntax},
		"empty":                    {``, ErrSyntax},
		"leading zero":             {`01`, ErrSyntax},
		"bare point":               {`1.`, ErrSyntax},
		"plus":                     {`+1`, ErrSyntax},
		"trailing comma":           {`{"a":1,}`, ErrSyntax},
		"bad escape":               {`"\x"`, ErrSyntax},
		"open string":              {`"\`, ErrSyntax},
		"byte order mark":          {"\ufeff{}", ErrSyntax},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Check([]byte(c.text), 4); !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
}

func TestStringValuesAreNormalised(t *testing.T) {
	for in, want := range map[string]string{
		"{\"a\":\"e\u0301 \\\" \\n\"}": "{\"a\":\"\u00e9 \\\" \\u000a\"}",
		`["\u0065\u0301","x"]`:         "[\"\u00e9\",\"x\"]",
		"{\"e\u0301\":1}":              "{\"e\u0301\":1}",
	} {
		got, err := Check([]byte(in), 8)
		if err != nil || string(got) != want {
			t.Errorf("%q: %q, %v; want %q", in, got, err, want)
		}
	}
	plain := []byte(`{"a":"` + "grün" + `"}`)
	if got, err := Check(plain, 8); err != nil || &got[0] != &plain[0] {
		t.Error("a normal text was copied")
	}
}

func FuzzCheck(f *testing.F) {
	f.Add([]byte(`{"a":[1,-2.5e+3,true,null,"x\n\u00e9\ud83d\ude00"]}`))
	f.Add([]byte("[\"e\u0301\",\"\\u0065\\u0301\"]"))
	f.Fuzz(func(t *testing.T, in []byte) {
		out, err := Check(in, 32)
		if err != nil {
			return
		}
		var v any
		if err := json.Unmarshal(out, &v); err != nil {
			t.Fatalf("%q accepted as %q: %v", in, out, err)
		}
		walk(t, v)
		again, err := Check(out, 32)
		if err != nil || string(again) != string(out) {
			t.Fatalf("%q is not stable: %q, %v", out, again, err)
		}
	})
}

func walk(t *testing.T, v any) {
	switch x := v.(type) {
	case string:
		if !norm.NFC.IsNormalString(x) || strings.ContainsRune(x, 0) {
			t.Errorf("%q is not normal", x)
		}
	case []any:
		for _, e := range x {
			walk(t, e)
		}
	case map[string]any:
		for _, e := range x {
			walk(t, e)
		}
	}
}

func BenchmarkCheckOfAMessage(b *testing.B) {
	text := []byte(`{"client_msg_id":"0199c2a0-0016-7000-8000-000000000016","content":"` + strings.Repeat("Schönes Wetter heute, or is it? ", 12) + `","notify":"normal"}`)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Check(text, 32); err != nil {
			b.Fatal(err)
		}
	}
}
