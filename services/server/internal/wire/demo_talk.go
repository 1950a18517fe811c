// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/messaging"
	messagingapp "github.com/OWNER/bothy/services/server/internal/messaging/app"
)

// demoLines are what the demo team has talked about before anybody looks.
var demoLines = []struct {
	owner bool
	text  string
}{
	{true, "Welcome! This is **#general**. Everybody in the team reads and writes here."},
	{false, "Good to be here. I moved the release notes into the repository this morning."},
	{true, "Thanks. The changelog check fails on a missing fragment now:\n\n```sh\nmake gates\n```"},
	{false, "I will add one. Can the agent draft it for us?"},
	{true, "Mention it and watch: the run shows up here, and everybody can follow, steer or stop it."},
}

// demoTalk writes the lines as the people who say them.
func (r *commandRun) demoTalk(owner, member context.Context) error {
	channel, err := r.firstChannel(owner)
	if err != nil {
		return err
	}
	for _, line := range demoLines {
		who := member
		if line.owner {
			who = owner
		}
		if _, err := r.messaging.uses.Create(who, channel.MainThreadID, messagingapp.Draft{ClientMsgID: ids.New(), Content: line.text, Notify: "normal"}); err != nil {
			return fmt.Errorf("write a demo message: %w", err)
		}
	}
	return nil
}

// The sizes of seeded talk.
var seedSizes = map[string]int{"small": 50, "medium": 1000, "large": 20000}

// seedTalk fills the channels with messages of the people that are there. The same
// installation gets the same talk, so that two looks at it compare.
func (r *commandRun) seedTalk(ctx context.Context, size string) error {
	count, known := seedSizes[size]
	if !known {
		return ExitError{2, errors.New("--size is small, medium or large")}
	}
	people, err := r.identity.sources.ActivePeople(ctx)
	if err != nil {
		return err
	}
	channels, err := r.chat.rights.Channels(ctx)
	if err != nil {
		return err
	}
	if len(people) == 0 || len(channels) == 0 {
		return errors.New("there is nobody to talk yet; finish the setup first")
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range count {
		channel, err := r.chat.structure.Channel(ctx, channels[random.IntN(len(channels))].ID)
		if err != nil {
			return err
		}
		author := people[random.IntN(len(people))].ID
		err = r.units.Do(ctx, func(ctx context.Context) error {
			_, err := r.messaging.port.Create(ctx, messaging.NewMessage{
				ThreadID: channel.MainThreadID, Author: messaging.Author{Kind: actor.KindPerson, ID: author},
				Content: sentence(random), SuppressTrigger: true,
			})
			return err
		})
		if err != nil {
			return fmt.Errorf("write a message: %w", err)
		}
	}
	return nil
}

var seedWords = []string{
	"the build", "a draft", "our server", "this run", "the log", "an answer", "is ready", "needs a look", "was slow", "works again",
	"in review", "after lunch", "on both nodes", "without a restart", "for the release", "since Monday",
}

func sentence(random *rand.Rand) string {
	text := ""
	for range 2 + random.IntN(8) {
		text += seedWords[random.IntN(len(seedWords))] + " "
	}
	return text[:len(text)-1] + "."
}
