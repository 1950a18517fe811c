// SPDX-License-Identifier: Apache-2.0

// Package postgres keeps messages, their revisions and their mentions in PostgreSQL.
package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/messaging"
	"github.com/OWNER/bothy/services/server/internal/messaging/adapters/postgres/sqlcgen"
	"github.com/OWNER/bothy/services/server/internal/messaging/app"
	"github.com/OWNER/bothy/services/server/internal/messaging/domain"
	"github.com/OWNER/bothy/services/server/internal/platform/pg"
)

// Messages implements app.Repository.
type Messages struct{ db *pg.DB }

// NewMessages makes the repository.
func NewMessages(db *pg.DB) *Messages { return &Messages{db: db} }

var _ app.Repository = (*Messages)(nil)

func (r *Messages) read(ctx context.Context) *sqlcgen.Queries {
	return sqlcgen.New(r.db.Querier(ctx))
}

// toDomain gives violated keys their meaning.
func toDomain(err error) error {
	if pg.Constraint(err) == "messages_client_key" {
		return fmt.Errorf("%w: %w", app.ErrClientKey, err)
	}
	return err
}

func queued(ctx context.Context) *sqlcgen.Queries {
	return sqlcgen.New(pg.Queued(ctx, pg.MapError(toDomain)))
}

// Get implements app.Repository.
func (r *Messages) Get(ctx context.Context, id ids.ID) (domain.Message, error) {
	row, err := r.read(ctx).MessageGet(ctx, id)
	if err != nil {
		return domain.Message{}, pg.NotFound(err)
	}
	return message(row)
}

// In implements app.Repository.
func (r *Messages) In(ctx context.Context, list []ids.ID) ([]domain.Message, error) {
	rows, err := r.read(ctx).MessagesIn(ctx, list)
	if err != nil {
		return nil, err
	}
	out := make([]domain.Message, len(rows))
	for i, row := range rows {
		if out[i], err = message(sqlcgen.MessageGetRow(row)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Window implements app.Repository.
func (r *Messages) Window(ctx context.Context, thread ids.ID, w domain.Window) ([]domain.Message, error) {
	rows, err := r.read(ctx).MessagesWindow(ctx, thread, w.From, w.To)
	if err != nil {
		return nil, err
	}
	out := make([]domain.Message, len(rows))
	for i, row := range rows {
		if out[i], err = message(sqlcgen.MessageGetRow(row)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Place implements app.Repository.
func (r *Messages) Place(ctx context.Context, id ids.ID) (ids.ID, int64, error) {
	row, err := r.read(ctx).MessagePlace(ctx, id)
	return row.ThreadID, row.ThreadSeq, pg.NotFound(err)
}

// Lock implements app.Repository.
func (r *Messages) Lock(ctx context.Context, id ids.ID) error {
	return queued(ctx).MessageLock(ctx, id)
}

const (
	// The author is compared in a way that no index serves. Prepared on a table without statistics, the plan would
	// otherwise walk all messages of the author, and stay that way until the table is analyzed.
	findSent  = `SELECT id, client_hash FROM messages WHERE client_msg_id = $2 AND author_id IS NOT DISTINCT FROM $1`
	findReply = `SELECT id, thread_id, thread_seq, author_id, deleted_at IS NOT NULL FROM messages WHERE id = $1`
)

// FindSent implements app.Repository, by messages_client_key.
func (r *Messages) FindSent(ctx context.Context, author, key ids.ID, into *app.Sent) error {
	return pg.QueuedRow(ctx, findSent, []any{author, key}, func(row pgx.Row) error {
		return maybe(row.Scan(&into.ID, &into.Hash))
	})
}

// FindReply implements app.Repository.
func (r *Messages) FindReply(ctx context.Context, id ids.ID, into *app.Target) error {
	return pg.QueuedRow(ctx, findReply, []any{id}, func(row pgx.Row) error {
		return maybe(row.Scan(&into.ID, &into.ThreadID, &into.ThreadSeq, &into.AuthorID, &into.Deleted))
	})
}

// maybe passes the absence of a row.
func maybe(err error) error {
	if pg.IsNoRows(err) {
		return nil
	}
	return err
}

// noLinks is the document of a content without any, which most have.
var noLinks = json.RawMessage("{}")

func links(l domain.Links) (json.RawMessage, error) {
	if len(l.MessageIDs)+len(l.ThreadIDs)+len(l.ChannelIDs) == 0 {
		return noLinks, nil
	}
	return json.Marshal(l)
}

// columns is a list of mentions as arrays.
type columns struct {
	kinds  []string
	ids    []ids.ID
	labels []string
	silent []bool
}

func columnsOf(mentions []domain.Mention) columns {
	c := columns{kinds: []string{}, ids: []ids.ID{}, labels: []string{}, silent: []bool{}}
	for _, m := range mentions {
		c.kinds, c.ids = append(c.kinds, m.Kind), append(c.ids, m.ID)
		c.labels, c.silent = append(c.labels, m.Label), append(c.silent, m.Silent)
	}
	return c
}

// Insert implements app.Repository.
func (r *Messages) Insert(ctx context.Context, m domain.Message) error {
	raw, err := links(m.Links)
	if err != nil {
		return fmt.Errorf("encode the links: %w", err)
	}
	named := columnsOf(m.Mentions)
	p := sqlcgen.MessageInsertParams{
		ID: m.ID, ThreadID: m.ThreadID, ChannelID: m.ChannelID, ThreadSeq: m.ThreadSeq, Kind: m.Kind, AuthorKind: m.AuthorKind, AuthorID: m.AuthorID.Ptr(),
		Content: m.Content, Dialect: domain.Dialect, PlainText: m.Plain, HasBits: int32(m.HasBits), Links: raw, RunID: m.RunID.Ptr(), Notify: m.Notify,
		ClientMsgID: m.ClientMsgID.Ptr(), ClientHash: m.ClientHash, CreatedAt: m.CreatedAt,
		MentionKinds: named.kinds, MentionIds: named.ids, MentionLabels: named.labels, MentionSilent: named.silent,
	}
	if m.ReplyTo != nil {
		p.ReplyToID = &m.ReplyTo.ID
	}
	return queued(ctx).MessageInsert(ctx, p)
}

// Edit implements app.Repository.
func (r *Messages) Edit(ctx context.Context, m domain.Message, replaced string, by ids.ID, trim int) error {
	raw, err := links(m.Links)
	if err != nil {
		return fmt.Errorf("encode the links: %w", err)
	}
	q := queued(ctx)
	err = q.RevisionInsert(ctx, sqlcgen.RevisionInsertParams{
		MessageID: m.ID, Revision: int32(m.Revision - 1), Content: replaced, EditedBy: by, ReplacedAt: *m.EditedAt,
	})
	if err != nil {
		return err
	}
	if trim > 1 {
		if err := q.RevisionsTrim(ctx, m.ID, int32(trim)); err != nil {
			return err
		}
	}
	err = q.MessageEdit(ctx, sqlcgen.MessageEditParams{
		ID: m.ID, Content: m.Content, PlainText: m.Plain, HasBits: int32(m.HasBits), Links: raw, Revision: int32(m.Revision), EditedAt: m.EditedAt, Version: m.Version,
	})
	if err != nil {
		return err
	}
	named := columnsOf(m.Mentions)
	return q.MentionsReplace(ctx, sqlcgen.MentionsReplaceParams{
		MessageID: m.ID, ThreadID: m.ThreadID, ChannelID: m.ChannelID, ThreadSeq: m.ThreadSeq, AuthorID: m.AuthorID.Ptr(), At: *m.EditedAt,
		MentionKinds: named.kinds, MentionIds: named.ids, MentionLabels: named.labels, MentionSilent: named.silent,
	})
}

// Delete implements app.Repository.
func (r *Messages) Delete(ctx context.Context, m domain.Message) error {
	return queued(ctx).MessageDelete(ctx, sqlcgen.MessageDeleteParams{
		ID: m.ID, DeletedAt: &m.Deleted.At, DeletedBy: m.Deleted.By.Ptr(), DeleteKind: &m.Deleted.Kind, DeleteReason: optional(m.Deleted.Reason), Version: m.Version,
	})
}

// SetTrigger implements app.Repository.
func (r *Messages) SetTrigger(ctx context.Context, m domain.Message) error {
	raw, err := json.Marshal(m.Triggers)
	if err != nil {
		return fmt.Errorf("encode the triggers: %w", err)
	}
	return queued(ctx).MessageSetTrigger(ctx, sqlcgen.MessageSetTriggerParams{ID: m.ID, TriggerState: m.TriggerState, Triggers: raw, Version: m.Version})
}

// SetThread implements app.Repository.
func (r *Messages) SetThread(ctx context.Context, m domain.Message) error {
	return queued(ctx).MessageSetThread(ctx, m.StartedThreadID.Ptr(), m.Version, m.ID)
}

// Ever implements app.Repository.
func (r *Messages) Ever(ctx context.Context, id ids.ID) ([]domain.Mention, error) {
	rows, err := r.read(ctx).MentionsEver(ctx, id)
	out := make([]domain.Mention, len(rows))
	for i, row := range rows {
		out[i] = domain.Mention{Kind: row.Kind, ID: ids.Deref(row.TargetID), Label: row.Label, Silent: row.Silent}
	}
	return out, err
}

// CountableBelow implements app.Repository.
func (r *Messages) CountableBelow(ctx context.Context, thread ids.ID, below int64) (int64, error) {
	return r.read(ctx).CountableBelow(ctx, thread, below)
}

// Unread implements app.Repository.
func (r *Messages) Unread(ctx context.Context, reader ids.ID, queries []messaging.UnreadQuery, limit int) (map[ids.ID]messaging.Unread, error) {
	p := sqlcgen.UnreadCountsParams{Reader: &reader, MaxCount: int32(limit) + 1}
	for _, q := range queries {
		p.Threads, p.Positions = append(p.Threads, q.ThreadID), append(p.Positions, q.Above)
	}
	rows, err := r.read(ctx).UnreadCounts(ctx, p)
	if err != nil {
		return nil, err
	}
	out := make(map[ids.ID]messaging.Unread, len(rows))
	for _, row := range rows {
		out[row.ThreadID] = messaging.Unread{
			Count: min(int(row.Unread), limit), Capped: int(row.Unread) > limit, Mentions: min(int(row.Mentions), limit),
		}
	}
	return out, nil
}

// BroadcastsSince implements app.Repository.
func (r *Messages) BroadcastsSince(ctx context.Context, author, channel ids.ID, since time.Time) (int, error) {
	n, err := r.read(ctx).BroadcastsSince(ctx, &author, channel, since)
	return int(n), err
}

// LockAuthor implements app.Repository.
func (r *Messages) LockAuthor(ctx context.Context, author, channel ids.ID) error {
	return queued(ctx).AuthorLock(ctx, author, channel)
}

// LastOfAuthor implements app.Repository.
func (r *Messages) LastOfAuthor(ctx context.Context, author, channel ids.ID, since time.Time) (time.Time, error) {
	at, err := r.read(ctx).LastOfAuthor(ctx, &author, channel, ids.NewAt(since))
	return at, maybe(err)
}

func message(row sqlcgen.MessageGetRow) (domain.Message, error) {
	r := row.Message
	m := domain.Message{
		ID: r.ID, ThreadID: r.ThreadID, ChannelID: r.ChannelID, ThreadSeq: r.ThreadSeq, Kind: r.Kind, AuthorKind: r.AuthorKind,
		AuthorID: ids.Deref(r.AuthorID), AuthorLabel: value(r.AuthorLabel), Content: r.Content, Plain: r.PlainText, HasBits: int(r.HasBits),
		RunID: ids.Deref(r.RunID), StartedThreadID: ids.Deref(r.StartedThreadID), TriggerState: r.TriggerState, Notify: r.Notify,
		ClientMsgID: ids.Deref(r.ClientMsgID), ClientHash: r.ClientHash, Revision: int(r.Revision), ReactionsRev: r.ReactionsRev,
		Imported: r.Imported, EditedAt: r.EditedAt, CreatedAt: r.CreatedAt, Version: r.Version,
	}
	if r.ReplyToID != nil && row.ReplySeq != nil {
		m.ReplyTo = &domain.Reply{ID: *r.ReplyToID, ThreadSeq: *row.ReplySeq, AuthorID: ids.Deref(row.ReplyAuthorID), Deleted: row.ReplyDeleted}
	}
	if r.DeletedAt != nil {
		m.Deleted = &domain.Deletion{At: *r.DeletedAt, By: ids.Deref(r.DeletedBy), Kind: value(r.DeleteKind), Reason: value(r.DeleteReason)}
	}
	for _, part := range []struct {
		raw  json.RawMessage
		none string
		into any
	}{{r.Links, "{}", &m.Links}, {r.Triggers, "[]", &m.Triggers}, {row.Mentions, "[]", &m.Mentions}} {
		if string(part.raw) == part.none {
			continue
		}
		if err := json.Unmarshal(part.raw, part.into); err != nil {
			return m, fmt.Errorf("read a document of message %s: %w", r.ID, err)
		}
	}
	return m, nil
}

// optional is NULL for the empty text.
func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
