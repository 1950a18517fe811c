// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"testing"

	"github.com/OWNER/bothy/services/server/api/rest"
	"github.com/OWNER/bothy/services/server/internal/instance"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/eventlog"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/sync/app"
)

// log has the positions 1 to head, of which the process has passed on those up to local.
type log struct {
	app.LogReader
	authorize.Authorizer
	authorize.Delivery
	instance.Instance
	epoch       ids.ID
	head, local int64
}

func (l *log) Bounds(context.Context) (minSeq, head int64, err error) { return 1, l.head, nil }
func (l *log) Count(_ context.Context, from, to int64) (int64, error) {
	return min(to, l.head) - from + 1, nil
}
func (l *log) Generation() uint64                 { return 1 }
func (l *log) Wait(context.Context, uint64) error { return nil }
func (l *log) Info(context.Context) (instance.Info, error) {
	return instance.Info{SyncEpoch: l.epoch}, nil
}
func (l *log) LocalHead() int64                                                      { return l.local }
func (l *log) Ready() bool                                                           { return true }
func (l *log) Fill(context.Context, ids.ID) error                                    { return nil }
func (l *log) Release(ids.ID)                                                        {}
func (l *log) Visible(ids.ID) (authorize.Scope, bool)                                { return authorize.Scope{All: true}, true }
func (l *log) Authorize(context.Context, authorize.Action, authorize.Resource) error { return nil }
func (l *log) Admit(ids.ID, authorize.Action, authorize.Resource, int64) authorize.Verdict {
	return authorize.Admitted
}

// reader reads the stored log; its Visible is another one than that of rights.
type reader struct{ *log }

func (r reader) Visible(_ context.Context, _ ids.ID, _ authorize.Scope, from, through int64, _ int) ([]eventlog.Record, error) {
	var out []eventlog.Record
	for seq := from; seq <= min(through, r.head); seq++ {
		out = append(out, eventlog.Record{Seq: seq, EventID: ids.New(), Type: "message.created", Payload: json.RawMessage(`{}`)})
	}
	return out, nil
}

func TestAPageIsCompleteOnlyWithEverythingDurable(t *testing.T) {
	for name, c := range map[string]struct {
		after    int64
		complete bool
		through  int64
		code     errs.Code
	}{
		"behind what was passed on":      {after: 2, through: 4},
		"at what was passed on":          {after: 4, through: 4},
		"at an own write of this moment": {after: 5, through: 5, complete: true},
		"beyond the log":                 {after: 6, code: errs.CodeResyncRequired},
	} {
		t.Run(name, func(t *testing.T) {
			l := &log{epoch: ids.New(), head: 5, local: 4}
			config := app.CatchUpConfig{MaxEvents: 100, ScanRows: 100, PageSize: 100, PageBytes: 1 << 20, MaxConcurrent: 1}
			h := New(Deps{Events: app.NewEvents(l, l, app.NewCatchUp(config, reader{l}, l, l, l), l)})
			ctx := actor.With(t.Context(), actor.Actor{ID: ids.New(), Kind: actor.KindPerson})
			answer, err := h.ListSyncEvents(ctx, rest.ListSyncEventsRequestObject{Params: rest.ListSyncEventsParams{After: c.after, SyncEpoch: l.epoch}})
			if c.code != "" {
				if !errs.Is(err, c.code) {
					t.Fatalf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			w := httptest.NewRecorder()
			if err := answer.VisitListSyncEventsResponse(w); err != nil {
				t.Fatal(err)
			}
			var page eventPage
			if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil {
				t.Fatal(err)
			}
			if page.Complete != c.complete || page.ThroughSeq != c.through || page.HeadSeq != 5 || len(page.Events) != int(c.through-c.after) {
				t.Errorf("complete %v through %d, head %d, %d events", page.Complete, page.ThroughSeq, page.HeadSeq, len(page.Events))
			}
		})
	}
}
