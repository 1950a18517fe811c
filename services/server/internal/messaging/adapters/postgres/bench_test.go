// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"sync/atomic"
	"testing"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/messaging/app"
	"github.com/OWNER/bothy/services/server/internal/platform/pg"
	"github.com/OWNER/bothy/services/server/internal/platform/pg/pgtest"
)

// BenchmarkCreate sends messages from 16 writers per processor, to one thread and to many.
// Rights are decided by a fake; the event log is the real one.
func BenchmarkCreate(b *testing.B) {
	for name, threads := range map[string]int{"one thread": 1, "50 threads": 50} {
		b.Run(name, func(b *testing.B) {
			w := newWorld(b, pgtest.WithConfig(func(c *pg.Config) { c.MaxConns = 16 }))
			list := []ids.ID{w.thread}
			for len(list) < threads {
				out, err := w.messages.CreateThread(w.as(w.anna), app.NewThread{ChannelID: w.channel.ID, Title: "Side", Message: draft("begin")})
				if err != nil {
					b.Fatal(err)
				}
				list = append(list, out.Message.ThreadID)
			}
			var n atomic.Int64
			b.SetParallelism(16)
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					thread := list[n.Add(1)%int64(len(list))]
					if _, err := w.messages.Create(w.as(w.anna), thread, draft("Could you look at the build, please? It fails since this morning.")); err != nil {
						b.Error(err)
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
		})
	}
}
