// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"slices"

	"github.com/OWNER/bothy/services/server/test/harness"
)

// leak is one case. A new read operation needs one line here:
//
//	{op: "getThing", by: "caller", with: with("{thing}"), shows: "{thing}"}
//
// by is who succeeds: owner, caller (a person with trigger in the hidden place) or agent (which
// answers there). with is the call; a word in braces is the identifier of the hidden thing of that
// name, see hide. Such a case is asked by every stranger for the hidden thing and for one that does
// not exist. A case without such a word is a list: it is asked before and after the hidden things
// are made. shows must occur in the answer to the one who may. known names strangers who may see
// the thing all the same, by rule.
type leak struct {
	op    string
	by    string
	with  []any
	shows string
	known []string
}

func (l leak) skips(stranger string) bool { return slices.Contains(l.known, stranger) }

// members see each other, which guests and agents do only in common places; everybody but guests
// sees groups.
var (
	members  = []string{"member"}
	ofGroups = []string{"member", "agent"}
)

func preview(kind string, change harness.Body) harness.Body {
	return harness.Body{"change": harness.Body{kind: change}}
}

var leaks = []leak{
	{op: "getDiscovery", by: "owner"},
	{op: "getJwks", by: "owner"},
	{op: "getInstance", by: "caller"},
	{op: "getInstanceSettings", by: "owner"},

	{op: "listFeatureFlags", by: "owner"},
	{op: "listSigningKeys", by: "owner", shows: "kid"},

	{op: "listGroups", by: "caller", shows: "{group}", known: ofGroups},
	{op: "listGroups", by: "caller", with: with(harness.Query{"query": "{group handle}"}), shows: "{group}", known: ofGroups},
	{op: "getGroup", by: "caller", with: with("{group}"), shows: "{group}", known: ofGroups},
	{op: "listGroupMembers", by: "caller", with: with("{group}"), shows: "{person}", known: ofGroups},
	{op: "listGrants", by: "owner", with: with(harness.Query{"target": "channel:{channel}", "include_inherited": "true"}), shows: "{grant}"},
	{op: "listGrants", by: "owner", with: with(harness.Query{"target": "space:{space}"}), shows: "{grant}"},
	{op: "listGrants", by: "caller", with: with(harness.Query{"subject_id": "{person}"}), shows: "{grant}"},
	{op: "listGrants", by: "owner", with: with(harness.Query{"target": "instance"})},
	{op: "getGrant", by: "caller", with: with("{grant}"), shows: "{grant}"},
	{op: "getAccessHints", by: "caller", with: with(harness.Query{"targets": "space:{space},channel:{channel}"}), shows: "{channel}"},

	{op: "explainAccess", by: "caller", with: with(harness.Query{"principal_id": "{me}", "target": "channel:{channel}"}), shows: "{channel}"},
	{op: "explainAccess", by: "caller", with: with(harness.Query{"principal_id": "{me}", "target": "thread:{thread}", "action": "message.create"}), shows: "{channel}"},
	{op: "explainAccess", by: "owner", with: with(harness.Query{"principal_id": "{person}", "target": "instance"}), shows: "{person}", known: members},
	{op: "listAccessHolders", by: "owner", with: with(harness.Query{"target": "space:{space}"}), shows: "{person}"},
	{op: "listAccessHolders", by: "owner", with: with(harness.Query{"target": "channel:{channel}"}), shows: "{person}"},
	{op: "previewAccess", by: "owner", with: with(preview("grant_create", grantOf("{me}", "channel", "{channel}", "read"))), shows: "items"},
	{op: "previewAccess", by: "owner", with: with(preview("grant_revoke", harness.Body{"grant_id": "{grant}"})), shows: "{person}"},
	{op: "previewAccess", by: "owner", with: with(preview("channel_inherits", harness.Body{"channel_id": "{channel}", "inherits": false})), shows: "items"},

	{op: "getSelf", by: "caller", shows: "{person}"},
	{op: "listPasskeys", by: "caller"},
	{op: "listIdentities", by: "caller"},
	{op: "listUserIdentities", by: "owner", with: with("{person}")},
	{op: "listDevices", by: "caller", shows: "{device}"},
	{op: "listUserDevices", by: "owner", with: with("{person}"), shows: "{device}"},
	{op: "listIdentityProviders", by: "owner", shows: "{provider}"},
	{op: "getIdentityProvider", by: "owner", with: with("{provider}"), shows: "{provider}"},
	{op: "listUsers", by: "owner", shows: "{person}", known: members},
	{op: "getUser", by: "owner", with: with("{person}"), shows: "{person}", known: members},
	{op: "getPrincipal", by: "owner", with: with("{person}"), shows: "{person}", known: members},
	{op: "getPrincipal", by: "owner", with: with("{agent}"), shows: "{agent}", known: members},
	{op: "getPrincipalByHandle", by: "owner", with: with("{handle}"), shows: "{person}", known: members},
	{op: "searchDirectory", by: "owner", with: with(harness.Query{"query": "{handle}"}), shows: "{person}", known: members},
	{op: "listSessions", by: "caller", shows: "{session}"},
	{op: "listUserSessions", by: "owner", with: with("{person}"), shows: "{session}"},
	{op: "listTokens", by: "caller", shows: "{token}"},
	{op: "listTokens", by: "owner", with: with(harness.Query{"principal_id": "{agent}"}), shows: "items"},

	{op: "listSpaces", by: "caller", shows: "{space}"},
	{op: "getSpace", by: "caller", with: with("{space}"), shows: "{space}"},
	{op: "listChannels", by: "caller", shows: "{channel}"},
	{op: "listChannels", by: "caller", with: with(harness.Query{"space_id": "{space}"}), shows: "{channel}"},
	{op: "getChannel", by: "caller", with: with("{channel}"), shows: "{channel}"},
	{op: "getChannelBehavior", by: "caller", with: with("{channel}"), shows: "trigger_rule"},
	{op: "listThreads", by: "caller", with: with("{channel}")},
	{op: "getThread", by: "caller", with: with("{thread}"), shows: "{thread}"},
	{op: "listMessages", by: "caller", with: with("{thread}"), shows: "{message}"},
	{op: "getMessage", by: "caller", with: with("{message}"), shows: "{message}"},

	{op: "getSnapshot", by: "caller", with: with(harness.Query{"sections": "spaces,channels,threads,principals,runs,read_states"}), shows: "{thread}", known: members},
	{op: "getSnapshot", by: "caller", with: with(harness.Query{"sections": "spaces,channels,threads", "targets": "space:{space}"}), shows: "{thread}"},
	{op: "listSyncEvents", by: "caller", with: with(harness.Query{"after": "0", "sync_epoch": "{epoch}"}), shows: "events", known: []string{"member", "guest", "agent"}},

	{op: "listAgents", by: "caller", shows: "{agent}"},
	{op: "getAgent", by: "caller", with: with("{agent}"), shows: "{agent}"},
	{op: "listAgentTriggerers", by: "owner", with: with("{agent}"), shows: "{person}"},
	{op: "listThreadRuns", by: "caller", with: with("{thread}"), shows: "{run}"},
	{op: "getRun", by: "caller", with: with("{run}"), shows: "{run}"},
	{op: "getRunContext", by: "agent", with: with("{run}", harness.Invocation("{order}")), shows: "messages"},

	{op: "listAuditEvents", by: "owner", shows: "items"},
	{op: "getAuditEvent", by: "owner", with: with("{audit event}"), shows: "{audit event}"},
	{op: "listAuditCheckpoints", by: "owner"},
	{op: "exportAudit", by: "owner"},
	{op: "verifyAudit", by: "owner", with: with(harness.Body{})},
}
