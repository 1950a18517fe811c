// SPDX-License-Identifier: Apache-2.0

package textcheck_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/OWNER/bothy/services/server/internal/kernel/textcheck"
)

func TestANameIsOneLineThatShowsSomething(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]error{
		"":                                 nil,
		"  ":                               nil,
		"Mira Sand":                        nil,
		"दीपिका":                           nil,
		"👩\u200d🔬":                         nil,
		"⚙\ufe0f":                          nil,
		"…":                                nil,
		"a\u200bb":                         nil,
		"a\xff":                            textcheck.ErrInvalidUTF8,
		"a\nb":                             textcheck.ErrControl,
		"a\u2028b":                         textcheck.ErrControl,
		"a\u202eb":                         textcheck.ErrBidi,
		"\u200b":                           textcheck.ErrInvisible,
		"\u3164":                           textcheck.ErrInvisible,
		"\u2800 \u2800":                    textcheck.ErrInvisible,
		"\u00ad\u200d\ufe0f":               textcheck.ErrInvisible,
		"\u0301":                           textcheck.ErrInvisible,
		"\U000e0041":                       textcheck.ErrInvisible,
		"e" + strings.Repeat("\u0301", 8):  nil,
		"e" + strings.Repeat("\u0301", 60): textcheck.ErrStacked,
	} {
		if err := textcheck.Name(text); !errors.Is(err, want) {
			t.Errorf("%q: got %v, want %v", text, err, want)
		}
	}
}

func TestABodyMayHaveLinesAndReorderedText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]error{
		"a\nb\tc\r": nil, "a\u202eb": nil, "\u200b": nil,
		"a\x1b[31m": textcheck.ErrControl, "\xff": textcheck.ErrInvalidUTF8,
	} {
		if err := textcheck.Body(text); !errors.Is(err, want) {
			t.Errorf("%q: got %v, want %v", text, err, want)
		}
	}
}

func FuzzName(f *testing.F) {
	f.Add("Mira")
	f.Add("\u200b\xff")
	f.Fuzz(func(t *testing.T, text string) {
		if textcheck.Name(text) == nil && strings.ContainsAny(text, "\n\x00\u202e") {
			t.Errorf("%q passes", text)
		}
	})
}
