// SPDX-License-Identifier: Apache-2.0

package app

import (
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/internal/authz/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func held(p ids.ID, version int64, grants ...domain.Counted) *domain.Entry {
	return domain.Compile(domain.Principal{ID: p, Kind: domain.Person, Active: true}, version, grants, noon)
}

func TestAnEntryStaysRightWhileItsPrincipalIsNotNamed(t *testing.T) {
	c, p, q := newCache(10), ids.New(), ids.New()
	c.structure.Store(domain.NewStructure(nil, nil))
	c.passed(5)
	c.begin(p, false)
	c.put(held(p, 5), 1)
	if c.get(p, 6, 1, noon) != nil {
		t.Error("right for a version the log has not brought here")
	}
	c.change(q, 6, &domain.Change{}, time.Time{})
	if c.get(p, 6, 1, noon) != nil {
		t.Error("right before all changes of the version are known")
	}
	c.passed(6)
	if c.get(p, 6, 1, noon) == nil {
		t.Error("a change of somebody else has emptied the entry")
	}
	c.change(p, 7, nil, time.Time{})
	c.passed(7)
	if c.get(p, 7, 1, noon) != nil {
		t.Error("right although everything must be read anew")
	}
}

func TestAnEntryOfAnotherGenerationIsNoEntry(t *testing.T) {
	c, p := newCache(10), ids.New()
	c.begin(p, false)
	c.put(held(p, 5), 1)
	if c.get(p, 5, 2, noon) != nil {
		t.Error("an entry from before a crash of the database decides")
	}
}

func TestAnEntryThatEndsIsReadAnew(t *testing.T) {
	c, p := newCache(10), ids.New()
	c.begin(p, false)
	c.put(held(p, 5, domain.Counted{Level: domain.Read, ExpiresAt: noon.Add(time.Minute)}), 1)
	if c.get(p, 5, 1, noon) == nil {
		t.Error("ended before its time")
	}
	if c.get(p, 5, 1, noon.Add(time.Minute)) != nil {
		t.Error("right beyond its time")
	}
}

// A change that is observed between the read of an entry and its installation must not be
// lost: the entry read before it is refused.
func TestAChangeDuringALoadIsNotLost(t *testing.T) {
	c, p := newCache(10), ids.New()
	c.begin(p, true)
	read := held(p, 5)
	c.change(p, 6, &domain.Change{}, time.Time{})
	if c.put(read, 1) {
		t.Error("an entry from before the change was installed")
	}
	if !c.put(held(p, 6), 1) || c.get(p, 6, 1, noon) == nil {
		t.Error("the entry read after the change was refused")
	}
}

func TestChangesThatMayHaveBeenMissedVoidOlderEntries(t *testing.T) {
	c, p := newCache(10), ids.New()
	c.begin(p, false)
	c.put(held(p, 3), 1)
	c.passed(5) // The log begins here; what happened at 4 was never seen.
	if c.get(p, 5, 1, noon) != nil {
		t.Error("an entry older than the first event decides")
	}
}

func TestPinnedEntriesStayAndOthersGo(t *testing.T) {
	c, pinned := newCache(3), ids.New()
	c.begin(pinned, true)
	c.put(held(pinned, 1), 1)
	for range 20 {
		p := ids.New()
		c.begin(p, false)
		c.put(held(p, 1), 1)
	}
	if c.get(pinned, 1, 1, noon) == nil {
		t.Error("the entry of a connection has gone")
	}
	if len(c.slots) > 3 {
		t.Errorf("%d entries", len(c.slots))
	}
	c.release(pinned)
	for range 20 {
		c.begin(ids.New(), false)
	}
	if c.get(pinned, 1, 1, noon) != nil {
		t.Error("a released entry stays for ever")
	}
}

func TestPlacesThatChangeDuringTheirLoadAreNotLost(t *testing.T) {
	c, space := newCache(3), ids.New()
	c.beginLoad()
	c.restructure(func(s *domain.Structure) *domain.Structure {
		return s.WithSpace(domain.Space{ID: space, Archived: true})
	})
	c.install(domain.NewStructure([]domain.Space{{ID: space}}, nil))
	if sp, _ := c.structure.Load().Space(space); !sp.Archived {
		t.Error("what was observed during the load is missing")
	}
}
