// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"encoding/json"
	"net/http/httptest"
	"testing"

	"github.com/OWNER/bothy/services/server/api/contract"
	"github.com/OWNER/bothy/services/server/api/rest"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/platform/pg/pgtest"
)

// TestAnswersHaveTheFormOfTheContract goes through every operation once and holds status, ETag
// and body against the contract.
func TestAnswersHaveTheFormOfTheContract(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := w.as(w.anna)
	answer := func(name string, visit func(*httptest.ResponseRecorder) error, status int, schema, tag string) []byte {
		t.Helper()
		rec := httptest.NewRecorder()
		if err := visit(rec); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if rec.Code != status || rec.Header().Get("ETag") != tag {
			t.Errorf("%s: status %d, ETag %q", name, rec.Code, rec.Header().Get("ETag"))
		}
		if schema != "" {
			if err := contract.Value(schema, rec.Body.Bytes()); err != nil {
				t.Errorf("%s: %v\n%s", name, err, rec.Body)
			}
		}
		return rec.Body.Bytes()
	}

	create := rest.CreateMessageRequestObject{ThreadID: w.thread, Body: &rest.CreateMessageRequest{ClientMsgID: ids.New(), Content: "hi @bob and @nobody"}}
	first, err := w.handlers.CreateMessage(ctx, create)
	if err != nil {
		t.Fatal(err)
	}
	var message rest.Message
	body := answer("create", func(r *httptest.ResponseRecorder) error { return first.VisitCreateMessageResponse(r) }, 201, "MessageWritten", `"1"`)
	if err := json.Unmarshal(body, &message); err != nil {
		t.Fatal(err)
	}
	again, err := w.handlers.CreateMessage(ctx, create)
	if err != nil {
		t.Fatal(err)
	}
	answer("repeat", func(r *httptest.ResponseRecorder) error { return again.VisitCreateMessageResponse(r) }, 200, "MessageWritten", `"1"`)

	content := "hello, <@" + w.agent.String() + ">"
	edited, err := w.handlers.UpdateMessage(ctx, rest.UpdateMessageRequestObject{
		MessageID: message.ID, Params: rest.UpdateMessageParams{IfMatch: `"1"`}, Body: &rest.UpdateMessageRequest{Content: &content},
	})
	if err != nil {
		t.Fatal(err)
	}
	answer("edit", func(r *httptest.ResponseRecorder) error { return edited.VisitUpdateMessageResponse(r) }, 200, "MessageWritten", `"2"`)

	side, err := w.handlers.CreateThread(ctx, rest.CreateThreadRequestObject{ChannelID: w.channel.ID, Body: &rest.CreateThreadRequest{
		ParentMessageID: &message.ID, Message: rest.CreateMessageRequest{ClientMsgID: ids.New(), Content: "more"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	answer("thread", func(r *httptest.ResponseRecorder) error { return side.VisitCreateThreadResponse(r) }, 201, "ThreadCreated", "")

	reply, err := w.handlers.CreateMessage(ctx, rest.CreateMessageRequestObject{
		ThreadID: w.thread, Body: &rest.CreateMessageRequest{ClientMsgID: ids.New(), Content: "yes", ReplyToID: &message.ID},
	})
	if err != nil {
		t.Fatal(err)
	}
	answer("reply", func(r *httptest.ResponseRecorder) error { return reply.VisitCreateMessageResponse(r) }, 201, "MessageWritten", `"1"`)

	got, err := w.handlers.GetMessage(ctx, rest.GetMessageRequestObject{MessageID: message.ID})
	if err != nil {
		t.Fatal(err)
	}
	answer("get", func(r *httptest.ResponseRecorder) error { return got.VisitGetMessageResponse(r) }, 200, "Message", `"3"`)

	reason := "wrong place"
	gone, err := w.handlers.DeleteMessage(ctx, rest.DeleteMessageRequestObject{MessageID: message.ID, Params: rest.DeleteMessageParams{Reason: &reason}})
	if err != nil {
		t.Fatal(err)
	}
	answer("delete", func(r *httptest.ResponseRecorder) error { return gone.VisitDeleteMessageResponse(r) }, 204, "", "")

	limit := 1
	page, err := w.handlers.ListMessages(ctx, rest.ListMessagesRequestObject{ThreadID: w.thread, Params: rest.ListMessagesParams{Limit: &limit}})
	if err != nil {
		t.Fatal(err)
	}
	answer("list", func(r *httptest.ResponseRecorder) error { return page.VisitListMessagesResponse(r) }, 200, "MessagePage", "")
	if list := rest.MessagePage(page.(rest.ListMessages200JSONResponse)); len(list.Referenced) != 1 || list.Referenced[0].Deleted == nil || !list.Items[0].ReplyTo.Deleted {
		t.Errorf("a page with an answer to a deleted message: %+v", list)
	}
	w.checkLog()
}

// TestTheRoleOfTheServerMayDoAllThis runs with the rights of the server instead of the owner
// of the schema.
func TestTheRoleOfTheServerMayDoAllThis(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pgtest.AsApp())
	m := w.send(w.anna, "hi @bob")
	if _, err := w.messages.Update(w.as(w.anna), m.ID, 1, "hello @builder"); err != nil {
		t.Fatal(err)
	}
	if err := w.messages.Delete(w.as(w.anna), m.ID, ""); err != nil {
		t.Fatal(err)
	}
	w.checkCounters()
}
