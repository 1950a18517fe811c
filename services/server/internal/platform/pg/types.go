// SPDX-License-Identifier: Apache-2.0

package pg

import (
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// RegisterTypes teaches a connection to carry ids.ID, pointers and slices of it as binary
// UUIDs, and to give times in UTC.
func RegisterTypes(m *pgtype.Map) {
	m.TryWrapEncodePlanFuncs = append([]pgtype.TryWrapEncodePlanFunc{wrapEncodeID}, m.TryWrapEncodePlanFuncs...)
	m.TryWrapScanPlanFuncs = append([]pgtype.TryWrapScanPlanFunc{wrapScanID}, m.TryWrapScanPlanFuncs...)
	m.RegisterDefaultPgType(ids.ID{}, "uuid")
	m.RegisterDefaultPgType([]ids.ID{}, "_uuid")
	stamp := &pgtype.Type{Name: "timestamptz", OID: pgtype.TimestamptzOID, Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC}}
	m.RegisterType(stamp)
	m.RegisterType(&pgtype.Type{Name: "_timestamptz", OID: pgtype.TimestamptzArrayOID, Codec: &pgtype.ArrayCodec{ElementType: stamp}})
}

// idValue carries an ID through the codec for UUIDs. NULL reads as the zero ID.
type idValue ids.ID

// ScanUUID implements pgtype.UUIDScanner.
func (v *idValue) ScanUUID(u pgtype.UUID) error {
	*v = idValue{}
	if u.Valid {
		*v = u.Bytes
	}
	return nil
}

// UUIDValue implements pgtype.UUIDValuer.
func (v idValue) UUIDValue() (pgtype.UUID, error) { return pgtype.UUID{Bytes: v, Valid: true}, nil }

func wrapEncodeID(value any) (pgtype.WrappedEncodePlanNextSetter, any, bool) {
	if id, ok := value.(ids.ID); ok {
		return &encodeID{}, idValue(id), true
	}
	return nil, nil, false
}

type encodeID struct{ next pgtype.EncodePlan }

func (p *encodeID) SetNext(next pgtype.EncodePlan) { p.next = next }

func (p *encodeID) Encode(value any, buf []byte) ([]byte, error) {
	id, ok := value.(ids.ID)
	if !ok {
		return nil, fmt.Errorf("pg: encode %T as an ID", value)
	}
	return p.next.Encode(idValue(id), buf)
}

func wrapScanID(target any) (pgtype.WrappedScanPlanNextSetter, any, bool) {
	if id, ok := target.(*ids.ID); ok {
		return &scanID{}, (*idValue)(id), true
	}
	return nil, nil, false
}

type scanID struct{ next pgtype.ScanPlan }

func (p *scanID) SetNext(next pgtype.ScanPlan) { p.next = next }

func (p *scanID) Scan(src []byte, dst any) error {
	id, ok := dst.(*ids.ID)
	if !ok {
		return fmt.Errorf("pg: scan an ID into %T", dst)
	}
	return p.next.Scan(src, (*idValue)(id))
}
