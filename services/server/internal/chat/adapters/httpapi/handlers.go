// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"time"

	"github.com/OWNER/bothy/services/server/api/jsontype"
	"github.com/OWNER/bothy/services/server/api/rest"
	"github.com/OWNER/bothy/services/server/internal/authz"
	"github.com/OWNER/bothy/services/server/internal/chat/app"
	"github.com/OWNER/bothy/services/server/internal/chat/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/paging"
)

// Handlers implements the operations of the module; internal/wire embeds it.
type Handlers struct {
	spaces   *app.Spaces
	channels *app.Channels
	threads  *app.Threads
}

// New makes the handlers.
func New(spaces *app.Spaces, channels *app.Channels, threads *app.Threads) *Handlers {
	return &Handlers{spaces: spaces, channels: channels, threads: threads}
}

// The lists of this module and the position behind the last item of a page.
const (
	listSpaces   = "spaces"
	listChannels = "channels"
	listThreads  = "threads"
)

type keyPosition struct {
	Key string `json:"k"`
	ID  ids.ID `json:"i"`
}

type timePosition struct {
	At time.Time `json:"t"`
	ID ids.ID    `json:"i"`
}

// from reads a cursor; an absent one is the beginning.
func from[T any](list string, cursor *string) (position T, err error) {
	if cursor == nil {
		return position, nil
	}
	position, err = paging.Decode[T](list, *cursor)
	if err != nil {
		err = errs.New(errs.CodeCursorInvalid, "Begin the list again; this cursor belongs to none.").WithCause(err)
	}
	return position, err
}

// page cuts what was read beyond the limit and names the position to go on from.
func page[T any, P any](list string, items []T, limit int, position func(T) P) ([]T, *string, error) {
	if len(items) <= limit {
		return items, nil, nil
	}
	items = items[:limit]
	cursor, err := paging.Encode(list, position(items[limit-1]))
	return items, &cursor, err
}

func mapped[T, R any](items []T, fn func(T) R) []R {
	out := make([]R, len(items))
	for i, item := range items {
		out[i] = fn(item)
	}
	return out
}

// ListSpaces implements the operation listSpaces.
func (h *Handlers) ListSpaces(ctx context.Context, r rest.ListSpacesRequestObject) (rest.ListSpacesResponseObject, error) {
	limit := paging.Limit(r.Params.Limit)
	after, err := from[keyPosition](listSpaces, r.Params.Cursor)
	if err != nil {
		return nil, err
	}
	items, err := h.spaces.List(ctx, app.SpaceQuery{Archived: isTrue(r.Params.IncludeArchived), AfterKey: after.Key, AfterID: after.ID, Limit: limit + 1})
	if err != nil {
		return nil, err
	}
	items, next, err := page(listSpaces, items, limit, func(s domain.Space) keyPosition { return keyPosition{s.Key, s.ID} })
	return rest.ListSpaces200JSONResponse{Items: mapped(items, space), NextCursor: next}, err
}

// GetSpace implements the operation getSpace.
func (h *Handlers) GetSpace(ctx context.Context, r rest.GetSpaceRequestObject) (rest.GetSpaceResponseObject, error) {
	s, err := h.spaces.Get(ctx, r.SpaceID)
	if err != nil {
		return nil, err
	}
	return rest.GetSpace200JSONResponse{Body: space(s), Headers: rest.GetSpace200ResponseHeaders{ETag: rest.ETag(s.Version)}}, nil
}

// CreateSpace implements the operation createSpace.
func (h *Handlers) CreateSpace(ctx context.Context, r rest.CreateSpaceRequestObject) (rest.CreateSpaceResponseObject, error) {
	s, err := h.spaces.Create(ctx, app.NewSpace{
		Name: r.Body.Name, Description: value(r.Body.Description), Icon: r.Body.Icon.Ptr(), Color: r.Body.Color.Ptr(), AfterID: ids.Deref(r.Body.AfterID),
	})
	if err != nil {
		return nil, err
	}
	return rest.CreateSpace201JSONResponse{Body: space(s), Headers: rest.CreateSpace201ResponseHeaders{ETag: rest.ETag(s.Version)}}, nil
}

// UpdateSpace implements the operation updateSpace.
func (h *Handlers) UpdateSpace(ctx context.Context, r rest.UpdateSpaceRequestObject) (rest.UpdateSpaceResponseObject, error) {
	version, err := rest.ParseIfMatch(r.Params.IfMatch)
	if err != nil {
		return nil, err
	}
	s, err := h.spaces.Update(ctx, r.SpaceID, version, app.SpacePatch{
		Name: r.Body.Name, Description: r.Body.Description, Icon: patched(r.Body.Icon), Color: patched(r.Body.Color),
	})
	if err != nil {
		return nil, err
	}
	return rest.UpdateSpace200JSONResponse{Body: space(s), Headers: rest.UpdateSpace200ResponseHeaders{ETag: rest.ETag(s.Version)}}, nil
}

// ListChannels implements the operation listChannels.
func (h *Handlers) ListChannels(ctx context.Context, r rest.ListChannelsRequestObject) (rest.ListChannelsResponseObject, error) {
	limit := paging.Limit(r.Params.Limit)
	after, err := from[keyPosition](listChannels, r.Params.Cursor)
	if err != nil {
		return nil, err
	}
	q := app.ChannelQuery{
		SpaceID: ids.Deref(r.Params.SpaceID), Archived: isTrue(r.Params.IncludeArchived), AfterKey: after.Key, AfterID: after.ID, Limit: limit + 1,
	}
	if r.Params.Kind != nil {
		q.Kind = string(*r.Params.Kind)
	}
	items, err := h.channels.List(ctx, q)
	if err != nil {
		return nil, err
	}
	items, next, err := page(listChannels, items, limit, func(c domain.Channel) keyPosition { return keyPosition{c.Key, c.ID} })
	return rest.ListChannels200JSONResponse{Items: mapped(items, channel), NextCursor: next}, err
}

// GetChannel implements the operation getChannel.
func (h *Handlers) GetChannel(ctx context.Context, r rest.GetChannelRequestObject) (rest.GetChannelResponseObject, error) {
	c, err := h.channels.Get(ctx, r.ChannelID)
	if err != nil {
		return nil, err
	}
	return rest.GetChannel200JSONResponse{Body: channel(c), Headers: rest.GetChannel200ResponseHeaders{ETag: rest.ETag(c.Version)}}, nil
}

// CreateChannel implements the operation createChannel.
func (h *Handlers) CreateChannel(ctx context.Context, r rest.CreateChannelRequestObject) (rest.CreateChannelResponseObject, error) {
	c, err := h.channels.Create(ctx, app.NewChannel{
		SpaceID: r.SpaceID, Kind: string(r.Body.Kind), Name: r.Body.Name, Topic: value(r.Body.Topic), Icon: r.Body.Icon.Ptr(),
		Inherits: r.Body.Inherits == nil || *r.Body.Inherits, AfterID: ids.Deref(r.Body.AfterID),
	})
	if err != nil {
		return nil, err
	}
	return rest.CreateChannel201JSONResponse{Body: channel(c), Headers: rest.CreateChannel201ResponseHeaders{ETag: rest.ETag(c.Version)}}, nil
}

// UpdateChannel implements the operation updateChannel.
func (h *Handlers) UpdateChannel(ctx context.Context, r rest.UpdateChannelRequestObject) (rest.UpdateChannelResponseObject, error) {
	version, err := rest.ParseIfMatch(r.Params.IfMatch)
	if err != nil {
		return nil, err
	}
	p := app.ChannelPatch{
		Name: r.Body.Name, Topic: r.Body.Topic, Icon: patched(r.Body.Icon), Inherits: r.Body.Inherits, SlowModeSeconds: r.Body.SlowModeSeconds,
	}
	if f := r.Body.Forum; f != nil {
		p.Forum = &app.ForumPatch{DefaultSort: (*string)(f.DefaultSort), Guidelines: f.Guidelines, DefaultReaction: patched(f.DefaultReaction)}
	}
	c, err := h.channels.Update(authz.WithResolution(ctx, r.Body.ResolveI1.Choice()), r.ChannelID, version, p)
	if err != nil {
		return nil, err
	}
	return rest.UpdateChannel200JSONResponse{Body: channel(c), Headers: rest.UpdateChannel200ResponseHeaders{ETag: rest.ETag(c.Version)}}, nil
}

// ArchiveChannel implements the operation archiveChannel.
func (h *Handlers) ArchiveChannel(ctx context.Context, r rest.ArchiveChannelRequestObject) (rest.ArchiveChannelResponseObject, error) {
	version, err := rest.ParseIfMatch(r.Params.IfMatch)
	if err != nil {
		return nil, err
	}
	c, err := h.channels.Archive(ctx, r.ChannelID, version)
	if err != nil {
		return nil, err
	}
	return rest.ArchiveChannel200JSONResponse{Body: channel(c), Headers: rest.ArchiveChannel200ResponseHeaders{ETag: rest.ETag(c.Version)}}, nil
}

// GetChannelBehavior implements the operation getChannelBehavior.
func (h *Handlers) GetChannelBehavior(ctx context.Context, r rest.GetChannelBehaviorRequestObject) (rest.GetChannelBehaviorResponseObject, error) {
	c, err := h.channels.Behavior(ctx, r.ChannelID)
	if err != nil {
		return nil, err
	}
	return rest.GetChannelBehavior200JSONResponse{
		Body: behavior(c), Headers: rest.GetChannelBehavior200ResponseHeaders{ETag: rest.ETag(c.BehaviorVersion)},
	}, nil
}

// UpdateChannelBehavior implements the operation updateChannelBehavior.
func (h *Handlers) UpdateChannelBehavior(ctx context.Context, r rest.UpdateChannelBehaviorRequestObject) (rest.UpdateChannelBehaviorResponseObject, error) {
	version, err := rest.ParseIfMatch(r.Params.IfMatch)
	if err != nil {
		return nil, err
	}
	p := app.BehaviorPatch{
		TriggerRule: (*string)(r.Body.TriggerRule), AgentChaining: r.Body.AgentChaining, AgentSources: (*string)(r.Body.AgentSources), Prompt: r.Body.Prompt,
	}
	if r.Body.Skills != nil {
		list := mapped(r.Body.Skills, func(s rest.SkillBindingInput) domain.Skill {
			return domain.Skill{Name: s.Name, Source: s.Source.Ptr(), Ref: s.Ref.Ptr(), Enabled: s.Enabled}
		})
		p.Skills = &list
	}
	c, err := h.channels.UpdateBehavior(ctx, r.ChannelID, version, p)
	if err != nil {
		return nil, err
	}
	return rest.UpdateChannelBehavior200JSONResponse{
		Body: behavior(c), Headers: rest.UpdateChannelBehavior200ResponseHeaders{ETag: rest.ETag(c.BehaviorVersion)},
	}, nil
}

// SetChannelOperator implements the operation setChannelOperator.
func (h *Handlers) SetChannelOperator(ctx context.Context, r rest.SetChannelOperatorRequestObject) (rest.SetChannelOperatorResponseObject, error) {
	version, err := rest.ParseIfMatch(r.Params.IfMatch)
	if err != nil {
		return nil, err
	}
	ctx = authz.WithResolution(ctx, r.Body.ResolveI1.Choice())
	c, err := h.channels.SetOperator(ctx, r.ChannelID, version, string(r.Body.Mode), ids.Deref(r.Body.AgentID))
	if err != nil {
		return nil, err
	}
	return rest.SetChannelOperator200JSONResponse{Body: channel(c), Headers: rest.SetChannelOperator200ResponseHeaders{ETag: rest.ETag(c.Version)}}, nil
}

// ListThreads implements the operation listThreads.
func (h *Handlers) ListThreads(ctx context.Context, r rest.ListThreadsRequestObject) (rest.ListThreadsResponseObject, error) {
	limit := paging.Limit(r.Params.Limit)
	before, err := from[timePosition](listThreads, r.Params.Cursor)
	if err != nil {
		return nil, err
	}
	q := app.ThreadQuery{ChannelID: r.ChannelID, WithEmpty: isTrue(r.Params.IncludeEmpty), BeforeID: before.ID, Limit: limit + 1}
	q.ByCreation = r.Params.Sort != nil && *r.Params.Sort == rest.SortOrderCreated
	if r.Params.Kind != nil {
		q.Kind = string(*r.Params.Kind)
	}
	if r.Params.State != nil {
		q.State = string(*r.Params.State)
	}
	if !before.ID.IsZero() {
		q.BeforeAt = &before.At
	}
	items, err := h.threads.List(ctx, q)
	if err != nil {
		return nil, err
	}
	items, next, err := page(listThreads, items, limit, func(t domain.Thread) timePosition {
		if q.ByCreation {
			return timePosition{t.CreatedAt, t.ID}
		}
		return timePosition{t.ActiveAt, t.ID}
	})
	return rest.ListThreads200JSONResponse{Items: mapped(items, thread), NextCursor: next}, err
}

// GetThread implements the operation getThread.
func (h *Handlers) GetThread(ctx context.Context, r rest.GetThreadRequestObject) (rest.GetThreadResponseObject, error) {
	t, err := h.threads.Get(ctx, r.ThreadID)
	if err != nil {
		return nil, err
	}
	return rest.GetThread200JSONResponse{Body: thread(t), Headers: rest.GetThread200ResponseHeaders{ETag: rest.ETag(t.Version)}}, nil
}

func isTrue(b *bool) bool { return b != nil && *b }

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// patched is nil for an absent member, and a pointer to nil for one that clears.
func patched(n jsontype.Nullable[string]) **string {
	if !n.Set {
		return nil
	}
	p := n.Ptr()
	return &p
}
