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
	id := &pgtype.Type{Name: "uuid", OID: pgtype.UUIDOID, Codec: idCodec{}}
	m.RegisterType(id)
	m.RegisterType(&pgtype.Type{Name: "_uuid", OID: pgtype.UUIDArrayOID, Codec: &pgtype.ArrayCodec{ElementType: id}})
	m.RegisterDefaultPgType(ids.ID{}, "uuid")
	m.RegisterDefaultPgType([]ids.ID{}, "_uuid")
	stamp := &pgtype.Type{Name: "timestamptz", OID: pgtype.TimestamptzOID, Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC}}
	m.RegisterType(stamp)
	m.RegisterType(&pgtype.Type{Name: "_timestamptz", OID: pgtype.TimestamptzArrayOID, Codec: &pgtype.ArrayCodec{ElementType: stamp}})
}

// idCodec is the codec of UUIDs that knows ids.ID. The driver asks the codec before it falls
// back to sql.Scanner and driver.Valuer, which go by text and cost more than the rest of a row.
type idCodec struct{ pgtype.UUIDCodec }

// PlanScan implements pgtype.Codec.
func (c idCodec) PlanScan(m *pgtype.Map, oid uint32, format int16, target any) pgtype.ScanPlan {
	if format == pgtype.BinaryFormatCode {
		switch target.(type) {
		case *ids.ID:
			return scanID{}
		case **ids.ID:
			return scanIDPointer{}
		}
	}
	return c.UUIDCodec.PlanScan(m, oid, format, target)
}

// PlanEncode implements pgtype.Codec.
func (c idCodec) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	if format == pgtype.BinaryFormatCode {
		switch value.(type) {
		case ids.ID:
			return encodeID{}
		case *ids.ID:
			return encodeIDPointer{}
		}
	}
	return c.UUIDCodec.PlanEncode(m, oid, format, value)
}

type encodeID struct{}

func (encodeID) Encode(value any, buf []byte) ([]byte, error) {
	id, ok := value.(ids.ID)
	if !ok {
		return nil, fmt.Errorf("pg: encode %T as an ID", value)
	}
	return append(buf, id[:]...), nil
}

type encodeIDPointer struct{}

func (encodeIDPointer) Encode(value any, buf []byte) ([]byte, error) {
	id, ok := value.(*ids.ID)
	switch {
	case !ok:
		return nil, fmt.Errorf("pg: encode %T as an ID", value)
	case id == nil:
		return nil, nil
	default:
		return append(buf, id[:]...), nil
	}
}

// scanID reads NULL as the zero ID.
type scanID struct{}

func (scanID) Scan(src []byte, dst any) error {
	id, ok := dst.(*ids.ID)
	if !ok {
		return fmt.Errorf("pg: scan an ID into %T", dst)
	}
	return readID(src, id)
}

type scanIDPointer struct{}

func (scanIDPointer) Scan(src []byte, dst any) error {
	id, ok := dst.(**ids.ID)
	if !ok {
		return fmt.Errorf("pg: scan an ID into %T", dst)
	}
	if *id = nil; src == nil {
		return nil
	}
	*id = new(ids.ID)
	return readID(src, *id)
}

func readID(src []byte, id *ids.ID) error {
	*id = ids.ID{}
	if src == nil {
		return nil
	}
	if len(src) != len(id) {
		return fmt.Errorf("pg: an ID of %d bytes", len(src))
	}
	copy(id[:], src)
	return nil
}
