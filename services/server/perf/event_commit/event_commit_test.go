// SPDX-License-Identifier: Apache-2.0

//go:build perf

// Package event_commit measures what the one order of all events costs: commits of message.create through the use case
// against the same SQL without the counter, in turns in one run. Machines differ; the ratio compares.
package event_commit

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	messagingapp "github.com/OWNER/bothy/services/server/internal/messaging/app"
	"github.com/OWNER/bothy/services/server/internal/wire"
	"github.com/OWNER/bothy/services/server/perf/internal/baseline"
	"github.com/OWNER/bothy/services/server/perf/internal/bench"
	"github.com/OWNER/bothy/services/server/perf/internal/load"
	"github.com/OWNER/bothy/services/server/perf/internal/report"
)

const (
	writers  = 16
	channels = 20
	// rounds hold one turn of each side, in the order A B B A, so that a machine that grows slower favours neither.
	rounds = 12
	turn   = 2 * time.Second
	// scopes of an API token that may write.
	scope = "messaging.write"
)

// side is one of the two ways to write.
type side struct {
	name  string
	write func(ctx context.Context, writer, n int) error
}

func TestCommits(t *testing.T) {
	b := bench.Install(t, "event_commit")
	b.Report.Load["writers"], b.Report.Load["rounds"], b.Report.Load["turn_s"] = writers, rounds, turn.Seconds()
	authors, places := populate(t, b)
	admin := b.Admin(t)
	err := wire.Measure(t.Context(), wire.Sources{File: b.ConfigFile()}, func(ctx context.Context, m wire.Measured) error {
		twin, err := baseline.New(ctx, admin, m.DB, int(m.DB.Config().MaxConns))
		if err != nil {
			return err
		}
		defer twin.Close()
		use := &side{name: "use case", write: func(ctx context.Context, w, n int) error {
			return useCase(ctx, m.Messages, authors[w], places[n%channels], b.Texts.Text(n))
		}}
		raw := &side{name: "same SQL without the counter", write: func(ctx context.Context, w, n int) error {
			return twin.Write(ctx, authors[w], places[n%channels], b.Texts.Text(n))
		}}
		return compare(ctx, b, use, raw)
	})
	if err != nil {
		t.Fatal(err)
	}
	b.Finish(t)
}

// compare lets both sides take turns and judges the median of the ratios of the rounds.
func compare(ctx context.Context, b *bench.Bench, use, raw *side) error {
	var ratios []float64
	for round := range rounds + 1 {
		order := []*side{use, raw}
		if round%2 == 1 {
			order = []*side{raw, use}
		}
		rate := map[*side]float64{}
		for _, s := range order {
			r := load.Closed{Writers: writers, Measured: turn}.Run(ctx, s.write)
			if r.Failed > 0 {
				return errors.Join(errors.New(s.name+" failed"), r.FirstError)
			}
			rate[s] = r.Rate()
			if round == 0 {
				continue // caches and statements warm up
			}
			summary := r.Latency.Summary()
			b.Report.Runs = append(b.Report.Runs, report.Run{Name: s.name, Latency: &summary, Rate: r.Rate()})
		}
		if round > 0 {
			ratios = append(ratios, rate[use]/rate[raw])
		}
	}
	b.Report.Judge(report.CommitRatio, ratios, 0, true)
	return nil
}

func useCase(ctx context.Context, messages *messagingapp.Messages, a baseline.Author, p baseline.Place, text string) error {
	author, err := ids.Parse(a.ID)
	if err != nil {
		return err
	}
	token, err := ids.Parse(a.TokenID)
	if err != nil {
		return err
	}
	thread, err := ids.Parse(p.ThreadID)
	if err != nil {
		return err
	}
	ctx = wire.MeasuredRequest(actor.With(ctx, actor.Actor{ID: author, Kind: actor.KindPerson, TokenID: token, Scopes: []string{scope}}))
	_, err = messages.Create(ctx, thread, messagingapp.Draft{ClientMsgID: ids.New(), Content: text, Notify: "normal"})
	return err
}

// populate makes people and channels with a server that then ends: a process that follows the log would take its share
// of the machine from one side alone.
func populate(t *testing.T, b *bench.Bench) ([]baseline.Author, []baseline.Place) {
	t.Helper()
	ctx := t.Context()
	server, err := b.Start(ctx)
	if err != nil {
		t.Fatal(err)
	}
	team, err := b.Populate(ctx, writers, channels)
	if err != nil {
		t.Fatal(err)
	}
	b.Texts = load.NewTexts(bench.Seed, nil)
	admin := b.Admin(t)
	var authors []baseline.Author
	for n, p := range team.People {
		// The first message of everybody gives the twin its payloads.
		if _, err := p.Send(ctx, team.Channels[n%channels].ThreadID, ids.New().String(), b.Texts.Text(n)); err != nil {
			t.Fatal(err)
		}
		a := baseline.Author{ID: p.ID}
		if err := admin.QueryRow(ctx, "SELECT id::text FROM api_tokens WHERE principal_id = $1", p.ID).Scan(&a.TokenID); err != nil {
			t.Fatal(err)
		}
		authors = append(authors, a)
	}
	var places []baseline.Place
	for _, c := range team.Channels {
		places = append(places, baseline.Place{SpaceID: team.SpaceID, ChannelID: c.ID, ThreadID: c.ThreadID})
	}
	stop, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := server.Stop(stop); err != nil {
		t.Fatal(err)
	}
	return authors, places
}
