// SPDX-License-Identifier: Apache-2.0

// Package ids makes and reads the identifiers of every stored thing: UUIDs, version 7
// where the server makes them, in canonical lower-case form on the wire.
//
// A version 7 value begins with its creation time in milliseconds, so keys made close
// in time lie close in an index. The order of two IDs is never used as the order of two
// events: clocks differ between nodes, and only the positions of the event log order.
package ids

import (
	"crypto/rand"
	"database/sql/driver"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
)

// ID is a UUID. The zero value means "none" and is never stored as a key.
type ID [16]byte

// ErrInvalid is returned by Parse for text that is not a UUID in canonical form.
var ErrInvalid = errors.New("not a canonical UUID")

// New makes a version 7 ID at the present time.
func New() ID { return NewAt(time.Now()) }

// NewAt makes a version 7 ID whose time part is t, with millisecond precision and the
// fraction of the millisecond in the next twelve bits, so that IDs made by one process
// ascend as a rule.
func NewAt(t time.Time) ID {
	var id ID
	// rand.Read never fails: the runtime ends the process when the system's source is gone.
	_, _ = rand.Read(id[8:])
	ms := t.UnixMilli()
	binary.BigEndian.PutUint64(id[:8], uint64(ms)<<16)
	fraction := uint16((t.UnixNano() - ms*int64(time.Millisecond)) * 4096 / int64(time.Millisecond))
	binary.BigEndian.PutUint16(id[6:8], 0x7000|fraction&0x0fff)
	id[8] = id[8]&0x3f | 0x80
	return id
}

// Parse reads the canonical lower-case form with hyphens. Any version is accepted,
// because clients choose the version of the IDs that make their writes repeatable.
func Parse(s string) (ID, error) {
	var id ID
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return ID{}, ErrInvalid
	}
	compact := make([]byte, 0, 32)
	for i := range len(s) {
		c := s[i]
		switch {
		case i == 8 || i == 13 || i == 18 || i == 23:
		case c >= '0' && c <= '9' || c >= 'a' && c <= 'f':
			compact = append(compact, c)
		default:
			return ID{}, ErrInvalid
		}
	}
	if _, err := hex.Decode(id[:], compact); err != nil {
		return ID{}, ErrInvalid
	}
	return id, nil
}

// MustParse is Parse for constants in tests and tables; it panics on bad text.
func MustParse(s string) ID {
	id, err := Parse(s)
	if err != nil {
		panic(fmt.Sprintf("ids: %q: %v", s, err))
	}
	return id
}

// IsZero reports whether the ID means "none".
func (id ID) IsZero() bool { return id == ID{} }

// Time is the creation time in the first 48 bits, meaningful for version 7 alone.
func (id ID) Time() time.Time {
	return time.UnixMilli(int64(binary.BigEndian.Uint64(id[:8]) >> 16)).UTC()
}

// Compare orders IDs by their bytes: negative, zero or positive as with bytes.Compare.
func (id ID) Compare(other ID) int {
	for i := range id {
		if id[i] != other[i] {
			return int(id[i]) - int(other[i])
		}
	}
	return 0
}

// String is the canonical form; the zero ID gives the UUID of zeros.
func (id ID) String() string {
	var b [36]byte
	id.encode(b[:])
	return string(b[:])
}

func (id ID) encode(b []byte) {
	hex.Encode(b[0:8], id[0:4])
	b[8] = '-'
	hex.Encode(b[9:13], id[4:6])
	b[13] = '-'
	hex.Encode(b[14:18], id[6:8])
	b[18] = '-'
	hex.Encode(b[19:23], id[8:10])
	b[23] = '-'
	hex.Encode(b[24:36], id[10:16])
}

// MarshalText implements encoding.TextMarshaler, and with it the JSON form.
func (id ID) MarshalText() ([]byte, error) {
	b := make([]byte, 36)
	id.encode(b)
	return b, nil
}

// UnmarshalText implements encoding.TextUnmarshaler; it accepts what Parse accepts.
func (id *ID) UnmarshalText(text []byte) error {
	parsed, err := Parse(string(text))
	if err != nil {
		return err
	}
	*id = parsed
	return nil
}

// Value implements driver.Valuer for drivers without a binary form of their own.
func (id ID) Value() (driver.Value, error) { return id.String(), nil }

// Scan implements sql.Scanner for the text form, sixteen bytes and NULL (the zero ID).
func (id *ID) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		*id = ID{}
		return nil
	case string:
		return id.UnmarshalText([]byte(v))
	case []byte:
		if len(v) == len(id) {
			copy(id[:], v)
			return nil
		}
		return id.UnmarshalText(v)
	case [16]byte:
		*id = v
		return nil
	default:
		return fmt.Errorf("ids: cannot scan %T", src)
	}
}

// Ptr gives nil for the zero ID and a pointer otherwise: the form of optional columns
// and members.
func (id ID) Ptr() *ID {
	if id.IsZero() {
		return nil
	}
	return &id
}

// Deref gives the zero ID for nil: the inverse of Ptr.
func Deref(p *ID) ID {
	if p == nil {
		return ID{}
	}
	return *p
}
