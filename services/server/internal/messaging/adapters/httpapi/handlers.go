// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/OWNER/bothy/services/server/api/rest"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/paging"
	"github.com/OWNER/bothy/services/server/internal/messaging/app"
	"github.com/OWNER/bothy/services/server/internal/messaging/domain"
)

// Handlers implements the operations of the module; internal/wire embeds it.
type Handlers struct{ messages *app.Messages }

// New makes the handlers.
func New(messages *app.Messages) *Handlers { return &Handlers{messages: messages} }

func draft(r rest.CreateMessageRequest) app.Draft {
	d := app.Draft{
		ClientMsgID: r.ClientMsgID, Content: r.Content, ReplyToID: ids.Deref(r.ReplyToID), Notify: string(rest.NotifyModeNormal),
		SuppressTrigger: r.SuppressTrigger != nil && *r.SuppressTrigger,
	}
	if r.Notify != nil {
		d.Notify = string(*r.Notify)
	}
	return d
}

// CreateMessage implements the operation createMessage.
func (h *Handlers) CreateMessage(ctx context.Context, r rest.CreateMessageRequestObject) (rest.CreateMessageResponseObject, error) {
	w, err := h.messages.Create(ctx, r.ThreadID, draft(*r.Body))
	if err != nil {
		return nil, err
	}
	tag := rest.ETag(w.Message.Version)
	if w.Repeated {
		return rest.CreateMessage200JSONResponse{Body: written(w), Headers: rest.CreateMessage200ResponseHeaders{ETag: tag}}, nil
	}
	return rest.CreateMessage201JSONResponse{Body: written(w), Headers: rest.CreateMessage201ResponseHeaders{ETag: tag}}, nil
}

// CreateThread implements the operation createThread.
func (h *Handlers) CreateThread(ctx context.Context, r rest.CreateThreadRequestObject) (rest.CreateThreadResponseObject, error) {
	n := app.NewThread{ChannelID: r.ChannelID, ParentID: ids.Deref(r.Body.ParentMessageID), Message: draft(r.Body.Message)}
	if r.Body.Title != nil {
		n.Title = *r.Body.Title
	}
	w, err := h.messages.CreateThread(ctx, n)
	if err != nil {
		return nil, err
	}
	out := rest.ThreadCreated{Created: w.Created, Message: written(w.Written)}
	if err := json.Unmarshal(w.Thread, &out.Thread); err != nil {
		return nil, fmt.Errorf("read the thread: %w", err)
	}
	if w.Created {
		return rest.CreateThread201JSONResponse(out), nil
	}
	return rest.CreateThread200JSONResponse(out), nil
}

// ListMessages implements the operation listMessages.
func (h *Handlers) ListMessages(ctx context.Context, r rest.ListMessagesRequestObject) (rest.ListMessagesResponseObject, error) {
	q, err := pageQuery(r)
	if err != nil {
		return nil, err
	}
	page, err := h.messages.List(ctx, q)
	if err != nil {
		return nil, err
	}
	return rest.ListMessages200JSONResponse{
		Items: all(page.Items), HasBefore: page.HasBefore, HasAfter: page.HasAfter, Counters: counters(page.Counters), Referenced: all(page.Referenced),
	}, nil
}

func all(list []domain.Message) []rest.Message {
	out := make([]rest.Message, len(list))
	for i, m := range list {
		out[i] = message(m)
	}
	return out
}

func pageQuery(r rest.ListMessagesRequestObject) (app.PageQuery, error) {
	q := app.PageQuery{ThreadID: r.ThreadID, Before: r.Params.Before, After: r.Params.After, Limit: paging.Limit(r.Params.Limit)}
	positions := 0
	for _, set := range []bool{r.Params.Before != nil, r.Params.After != nil, r.Params.Around != nil} {
		if set {
			positions++
		}
	}
	if positions > 1 {
		return q, errs.Invalid("query:around", "ambiguous", "Name at most one of before, after and around.")
	}
	if r.Params.Around == nil {
		return q, nil
	}
	if seq, err := strconv.ParseInt(*r.Params.Around, 10, 64); err == nil && seq > 0 {
		q.AroundSeq = &seq
		return q, nil
	}
	id, err := ids.Parse(*r.Params.Around)
	if err != nil {
		return q, errs.Invalid("query:around", "malformed", "Name a position or the ID of a message.")
	}
	q.AroundID = id
	return q, nil
}

// GetMessage implements the operation getMessage.
func (h *Handlers) GetMessage(ctx context.Context, r rest.GetMessageRequestObject) (rest.GetMessageResponseObject, error) {
	m, err := h.messages.Read(ctx, r.MessageID)
	if err != nil {
		return nil, err
	}
	return rest.GetMessage200JSONResponse{Body: message(m), Headers: rest.GetMessage200ResponseHeaders{ETag: rest.ETag(m.Version)}}, nil
}

// UpdateMessage implements the operation updateMessage.
func (h *Handlers) UpdateMessage(ctx context.Context, r rest.UpdateMessageRequestObject) (rest.UpdateMessageResponseObject, error) {
	version, err := rest.ParseIfMatch(r.Params.IfMatch)
	if err != nil {
		return nil, err
	}
	if r.Body.Content == nil {
		return nil, errs.Invalid("/content", "required", "Name what is to change.")
	}
	w, err := h.messages.Update(ctx, r.MessageID, version, *r.Body.Content)
	if err != nil {
		return nil, err
	}
	return rest.UpdateMessage200JSONResponse{Body: written(w), Headers: rest.UpdateMessage200ResponseHeaders{ETag: rest.ETag(w.Message.Version)}}, nil
}

// DeleteMessage implements the operation deleteMessage.
func (h *Handlers) DeleteMessage(ctx context.Context, r rest.DeleteMessageRequestObject) (rest.DeleteMessageResponseObject, error) {
	reason := ""
	if r.Params.Reason != nil {
		reason = *r.Params.Reason
	}
	if err := h.messages.Delete(ctx, r.MessageID, reason); err != nil {
		return nil, err
	}
	return rest.DeleteMessage204Response{}, nil
}
