// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { ApiError, readProblem } from "../api/problem";
import type { FeatureFlag, IdentityProvider } from "../api/types";
import { difference, heldWords } from "./access/rightsWords";
import { i1Of } from "./access/useI1";
import { actionWords, detailWords, verdict } from "./audit/auditWords";
import { reach } from "./instance/FlagsPage";
import { formOf, requestOf, suggestKey, words } from "./providers/providerForm";

describe("rights in words", () => {
  it("name the level before and after, or else what is gained and lost beside it", () => {
    expect(difference({ level: "read", capabilities: [] }, { level: null, capabilities: [] })).toBe("read → no access");
    expect(
      difference({ level: "write", capabilities: ["pins.manage"] }, { level: "write", capabilities: ["files.upload"] }),
    ).toBe("gains attach files; loses pin messages");
  });

  it("do not list what comes with the highest level", () => {
    expect(heldWords({ level: "manage", capabilities: ["files.upload"] })).toBe("manage");
    expect(heldWords({ level: null, capabilities: [] })).toBe("no access");
  });
});

describe("a refusal for the sake of a personal agent", () => {
  const i1 = { digest: "d", violations: [], truncated: false, options: [] };

  it("is read from the problem, and only from one that carries it", async () => {
    const answer = async (body: object) => new ApiError(await readProblem(Response.json(body, { status: 409 })));
    expect(i1Of(await answer({ code: "i1_violation", i1 }))).toEqual(i1);
    expect(i1Of(await answer({ code: "i1_violation" }))).toBeUndefined();
    expect(i1Of(await answer({ code: "conflict", i1 }))).toBeUndefined();
    expect(i1Of(new Error("other"))).toBeUndefined();
  });
});

describe("the audit log in words", () => {
  it("says what an action does, and keeps the name of an unknown one", () => {
    expect(actionWords("user.create")).not.toBe("user.create");
    expect(actionWords("something.new")).toBe("something.new");
  });

  it("says whether it is intact, and where it is not", () => {
    const good = { ok: true, first_seq: 1, last_seq: 12, checked: 12, breaks: [], checkpoints: 1, warnings: [] };
    expect(verdict(good)).toBe("Intact: 12 entries, 1 to 12, with 1 checkpoint.");
    const torn = {
      ...good,
      ok: false,
      breaks: [
        { seq: 7, kind: "hash" as const },
        { seq: 9, kind: "gap" as const },
      ],
    };
    expect(verdict(torn)).toBe("Not intact: at entry 7 an entry was changed, and 1 more.");
  });

  it("shows details of every form", () => {
    expect(detailWords(["read", "write"])).toBe("read, write");
    expect(detailWords([])).toBe("none");
    expect(detailWords(true)).toBe("true");
  });
});

describe("the reach of a flag", () => {
  const flag: FeatureFlag = {
    key: "k",
    module: "m",
    summary: "s",
    default: false,
    state: "rollout",
    people: ["a", "b"],
    groups: [],
    percent: 5,
    version: 1,
  };

  it("is told in words", () => {
    expect(reach(flag)).toBe("For 2 people, 5 % of everybody");
    expect(reach({ ...flag, people: [], percent: 0 })).toBe("For nobody yet");
    expect(reach({ ...flag, state: "off" })).toBe("For nobody");
  });
});

describe("the form of a provider", () => {
  it("takes lists however they are written, and domains with or without their sign", () => {
    expect(words(" openid,profile\nemail ")).toEqual(["openid", "profile", "email"]);
    const request = requestOf({ ...formOf(undefined), domains: "@example.org\nexample.net" }, undefined);
    expect(request.allowed_domains).toEqual(["example.org", "example.net"]);
  });

  it("never sends a secret that is not needed, and keeps claims it does not show", () => {
    const form = { ...formOf(undefined), clientAuth: "none" as const, secretRef: "file:x" };
    expect(requestOf(form, undefined).client_secret_ref).toBeUndefined();
    const provider = { ...formOf(undefined), claims: { email: "mail", groups: "old" } } as unknown as IdentityProvider;
    expect(requestOf({ ...formOf(undefined), groupsClaim: "" }, provider).claims).toEqual({ email: "mail" });
  });

  it("suggests a key that addresses take", () => {
    expect(suggestKey("Straße & Söhne GmbH")).toMatch(/^[a-z0-9-]+$/);
    expect(suggestKey("Directory 1")).toBe("directory-1");
  });
});
