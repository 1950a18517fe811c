// SPDX-License-Identifier: Apache-2.0

package jsoncanon

import (
	"encoding/json"
	"errors"
	"math"
	"testing"
)

// The vectors of RFC 8785: the example of section 3.2 and the doubles of appendix B.
func TestTransformOfTheStandardsExamples(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{
			"section 3.2.2",
			`{
  "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
  "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
  "literals": [null, true, false]
}`,
			`{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`,
		},
		{
			"section 3.2.3: names sort by UTF-16",
			`{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One","\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}`,
			"{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u0080\":\"Control\",\"ö\":\"Latin Small Letter O With Diaeresis\",\"€\":\"Euro Sign\",\"😀\":\"Emoji: Grinning Face\",\"\ufb33\":\"Hebrew Letter Dalet With Dagesh\"}",
		},
		{"arrays keep their order", `[56,{"d":true,"10":null,"1":[]}]`, `[56,{"1":[],"10":null,"d":true}]`},
		{"empty", ` { } `, `{}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Transform([]byte(c.in))
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			again, err := Transform(got)
			if err != nil || string(again) != string(got) {
				t.Errorf("canonical form is not stable: %s, %v", again, err)
			}
		})
	}
}

func TestNumbersOfAppendixB(t *testing.T) {
	for _, c := range []struct {
		bits uint64
		want string
	}{
		{0x0000000000000000, "0"},
		{0x8000000000000000, "0"},
		{0x0000000000000001, "5e-324"},
		{0x8000000000000001, "-5e-324"},
		{0x7fefffffffffffff, "1.7976931348623157e+308"},
		{0xffefffffffffffff, "-1.7976931348623157e+308"},
		{0x4340000000000000, "9007199254740992"},
		{0xc340000000000000, "-9007199254740992"},
		{0x4430000000000000, "295147905179352830000"},
		{0x44b52d02c7e14af5, "9.999999999999997e+22"},
		{0x44b52d02c7e14af6, "1e+23"},
		{0x44b52d02c7e14af7, "1.0000000000000001e+23"},
		{0x444b1ae4d6e2ef4e, "999999999999999700000"},
		{0x444b1ae4d6e2ef4f, "999999999999999900000"},
		{0x444b1ae4d6e2ef50, "1e+21"},
		{0x3eb0c6f7a0b5ed8c, "9.999999999999997e-7"},
		{0x3eb0c6f7a0b5ed8d, "0.000001"},
		{0x41b3de4355555553, "333333333.3333332"},
		{0x41b3de4355555554, "333333333.33333325"},
		{0x41b3de4355555555, "333333333.3333333"},
		{0x41b3de4355555556, "333333333.3333334"},
		{0x41b3de4355555557, "333333333.33333343"},
		{0xbecbf647612f3696, "-0.0000033333333333333333"},
		{0x43143ff3c1cb0959, "1424953923781206.2"},
	} {
		text, err := json.Marshal(math.Float64frombits(c.bits))
		if err != nil {
			t.Fatal(err)
		}
		got, err := number(json.Number(text))
		if err != nil || got != c.want {
			t.Errorf("%016x: got %s, %v; want %s", c.bits, got, err, c.want)
		}
	}
}

func TestTransformRefuses(t *testing.T) {
	for name, in := range map[string]string{
		"duplicate names": `{"a":1,"\u0061":2}`,
		"two values":      `1 2`,
		"nothing":         ``,
		"broken":          `{"a":`,
		"not UTF-8":       "\"\xff\"",
		"too large":       `1e400`,
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := Transform([]byte(in)); err == nil {
				t.Errorf("accepted as %s", got)
			}
		})
	}
	if _, err := Transform([]byte(`{"a":1,"a":1}`)); !errors.Is(err, ErrDuplicateName) {
		t.Errorf("duplicate name gives %v", err)
	}
}

func FuzzTransform(f *testing.F) {
	f.Add([]byte(`{"b":[1e3,"\u00e9"],"a":null}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		once, err := Transform(in)
		if err != nil {
			return
		}
		twice, err := Transform(once)
		if err != nil || string(once) != string(twice) {
			t.Errorf("%q: %q then %q, %v", in, once, twice, err)
		}
	})
}
