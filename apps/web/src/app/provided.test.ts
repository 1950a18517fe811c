// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { ApiError } from "../api/problem";
import type { LoginOutcome } from "../auth/login";
import { comeBack } from "./provided";

const outcome = { status: "ok" } as LoginOutcome;

describe("the way back from a provider", () => {
  it("ends in a session with what the provider gave", async () => {
    const seen: unknown[] = [];
    const login = {
      completeExternal: async (flow: string, result: string) => {
        seen.push(flow, result);
        return outcome;
      },
    };
    const back = { flow: "f", result: "r", error: null };
    expect(await comeBack(login, back, async (got) => void seen.push(got))).toBeUndefined();
    expect(seen).toEqual(["f", "r", outcome]);
  });

  it("says in words why nobody came in", async () => {
    const never = { completeExternal: async () => outcome };
    const nobody = async () => {
      throw new Error("nobody comes in");
    };
    const denied = { flow: "f", result: null, error: "provider_denied" };
    expect(await comeBack(never, denied, nobody)).toMatch(/did not let you in/);
    expect(await comeBack(never, { flow: null, result: null, error: null }, nobody)).toMatch(/did not work/);
    const refusing = {
      completeExternal: async (): Promise<LoginOutcome> => {
        throw new ApiError({ status: 403, code: "forbidden", reason: "not_provisioned", errors: [] });
      },
    };
    expect(await comeBack(refusing, { flow: "f", result: "r", error: null }, nobody)).toMatch(/not known here/);
  });
});
