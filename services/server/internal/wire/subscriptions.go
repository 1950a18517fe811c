// SPDX-License-Identifier: Apache-2.0

package wire

import "github.com/OWNER/bothy/services/server/internal/kernel/txn"

// subscribeModules connects what happens in one module to what others do about it in the
// same unit of work. Subscribers of one event are called in the order given here: runs come
// before read states, because a message that starts a run changes before it is counted.
func (p *process) subscribeModules() {
	txn.Subscribe(p.registry, p.chat.setup.OnSetupCompleted)
	txn.Subscribe(p.registry, p.runs.service.OnMessagePosted)
	txn.Subscribe(p.registry, p.sync.readStates.OnMessagePosted)
	txn.Subscribe(p.registry, p.runs.service.OnMessageEdited)
	txn.Subscribe(p.registry, p.runs.service.OnMessageDeleted)
	txn.Subscribe(p.registry, p.runs.service.OnAgentDisabled)
	txn.Subscribe(p.registry, p.runs.service.OnChannelArchived)
	txn.Subscribe(p.registry, p.runs.service.OnAccessChanged)
}

// Subscriptions lists the in-transaction subscriptions of the process, for the gate that
// holds their directions. It builds nothing that reaches a database.
func (p *process) subscriptions() []txn.SubscriptionInfo { return p.registry.Subscriptions() }
