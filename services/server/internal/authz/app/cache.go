// SPDX-License-Identifier: Apache-2.0

package app

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/OWNER/bothy/services/server/internal/authz/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// evictionSample is how many entries are looked at to find one to let go. The oldest of a
// sample is close enough to the oldest of all, at a cost that does not grow.
const evictionSample = 16

// cache holds the rights of principals and the places, of one process.
type cache struct {
	max  int
	tick atomic.Int64
	// observed is the version up to which every access.changed has been applied.
	observed atomic.Int64
	// structure is nil until it has been loaded.
	structure atomic.Pointer[domain.Structure]

	mu    sync.RWMutex
	slots map[ids.ID]*slot
	// floor is the version of the first event that was seen: changes up to it may have been
	// missed by entries that are older.
	floor   int64
	started bool
	// fresh is a structure read for a version that the log has not brought here yet.
	fresh           *domain.Structure
	freshVersion    int64
	freshGeneration uint64
	// journal notes structural changes while a structure is being loaded.
	journaling bool
	journal    []func(*domain.Structure) *domain.Structure
	// moved are threads whose place differs from the one older events tell.
	moved map[ids.ID]ids.ID
}

// slot is the place of a principal in the cache. Its fields are guarded by cache.mu, but for
// used.
type slot struct {
	entry      *domain.Entry // nil until loaded
	generation uint64
	pins       int
	// least is the version a loaded entry must at least have: a change came meanwhile.
	least int64
	// wanted are others whose rights a decision about the principal needed and did not find.
	wanted []ids.ID
	used   atomic.Int64
}

func newCache(limit int) *cache {
	return &cache{max: limit, slots: map[ids.ID]*slot{}, moved: map[ids.ID]ids.ID{}}
}

// get gives an entry that is right for the version at the moment; nil when there is none.
func (c *cache) get(principal ids.ID, version int64, generation uint64, now time.Time) *domain.Entry {
	c.mu.RLock()
	defer c.mu.RUnlock()
	s := c.slots[principal]
	if s == nil || !c.right(s, version, generation, now) {
		return nil
	}
	s.used.Store(c.tick.Add(1))
	return s.entry
}

// right reports whether the slot's entry may decide for the version. c.mu is held.
func (c *cache) right(s *slot, version int64, generation uint64, now time.Time) bool {
	e := s.entry
	if e == nil || s.generation != generation || e.Expired(now) {
		return false
	}
	return e.Version >= version || c.started && e.Version >= c.floor && c.observed.Load() >= version
}

// begin makes the slot of a principal whose entry is about to be loaded, so that changes
// observed meanwhile are not lost.
func (c *cache) begin(principal ids.ID, pin bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.slots[principal]
	if s == nil {
		c.evict()
		s = &slot{}
		s.used.Store(c.tick.Add(1))
		c.slots[principal] = s
	}
	if pin {
		s.pins++
	}
}

// put installs a loaded entry. It reports false when a change that the entry does not know
// has been observed since begin: the entry must be loaded again.
func (c *cache) put(e *domain.Entry, generation uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.slots[e.ID]
	if s == nil {
		return true // Evicted meanwhile; the caller may still use what it has read.
	}
	if e.Version < s.least {
		return false
	}
	if s.entry == nil || s.generation != generation || s.entry.Version <= e.Version {
		s.entry, s.generation = e, generation
	}
	return true
}

// maxWanted bounds what one principal waits for; the others are asked for again.
const maxWanted = 1000

// want notes that a decision about the principal needs the rights of another; wanted gives what was
// noted and forgets it.
func (c *cache) want(principal, other ids.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.slots[principal]; s != nil && len(s.wanted) < maxWanted && !slices.Contains(s.wanted, other) {
		s.wanted = append(s.wanted, other)
	}
}

func (c *cache) wanted(principal ids.ID) []ids.ID {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.slots[principal]
	if s == nil {
		return nil
	}
	out := s.wanted
	s.wanted = nil
	return out
}

// release lets a pinned principal go.
func (c *cache) release(principal ids.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.slots[principal]; s != nil && s.pins > 0 {
		s.pins--
	}
}

// evict makes room for one more entry. c.mu is held.
func (c *cache) evict() {
	if len(c.slots) < c.max {
		return
	}
	var oldest ids.ID
	var found *slot
	seen := 0
	for id, s := range c.slots {
		if s.pins > 0 {
			continue
		}
		if found == nil || s.used.Load() < found.used.Load() {
			oldest, found = id, s
		}
		if seen++; seen == evictionSample {
			break
		}
	}
	if found != nil {
		delete(c.slots, oldest)
	}
}

// start notes the first event of the log that this process sees. c.mu is held.
func (c *cache) start(version int64) {
	if !c.started {
		c.started, c.floor = true, version
	}
}

// change applies what an access.changed told about a principal.
func (c *cache) change(principal ids.ID, version int64, told *domain.Change, validUntil time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.start(version - 1) // The log begins between units, so this change is seen whole.
	if v := version - 1; v > c.observed.Load() {
		c.observed.Store(v)
	}
	s := c.slots[principal]
	if s == nil {
		return
	}
	s.least = max(s.least, version)
	if s.entry == nil || s.entry.Version >= version {
		return
	}
	structure := c.structure.Load()
	if told == nil || structure == nil || s.entry.Version < c.floor {
		s.entry = nil
		return
	}
	s.entry = s.entry.Apply(*told, structure, version, validUntil)
}

// passed notes an event that is no access.changed: every change up to its version is known.
func (c *cache) passed(version int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.start(version)
	if version > c.observed.Load() {
		c.observed.Store(version)
	}
}

// restructure applies a change of places in the order of the log.
func (c *cache) restructure(fn func(*domain.Structure) *domain.Structure) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.journaling {
		c.journal = append(c.journal, fn)
	}
	if s := c.structure.Load(); s != nil {
		c.structure.Store(fn(s))
	}
}

// beginLoad starts to note structural changes; install ends it with what was loaded, nil for
// nothing, and repeats on it what came meanwhile.
func (c *cache) beginLoad() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.journaling, c.journal = true, nil
}

func (c *cache) install(s *domain.Structure) {
	c.mu.Lock()
	defer c.mu.Unlock()
	journal := c.journal
	c.journaling, c.journal = false, nil
	if s == nil {
		return
	}
	for _, fn := range journal {
		s = fn(s)
	}
	c.structure.Store(s)
}

// structureAt gives places that are right for the version, nil when they must be read.
func (c *cache) structureAt(version int64, generation uint64) *domain.Structure {
	if s := c.structure.Load(); s != nil && c.observed.Load() >= version {
		return s
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.fresh != nil && c.freshVersion == version && c.freshGeneration == generation {
		return c.fresh
	}
	return nil
}

func (c *cache) putFresh(s *domain.Structure, version int64, generation uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if version >= c.freshVersion || generation != c.freshGeneration {
		c.fresh, c.freshVersion, c.freshGeneration = s, version, generation
	}
}

func (c *cache) move(thread, channel ids.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.moved[thread] = channel
}

func (c *cache) channelOf(thread ids.ID) (ids.ID, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	channel, ok := c.moved[thread]
	return channel, ok
}
