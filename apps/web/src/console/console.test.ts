// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import type { ApiClient } from "../api/client";
import { Directory, parseTarget, placeName, targetText } from "./directory";
import { durationWords, rangeWords, settingName, splitDuration, valueWords } from "./instance/settingWords";
import { isStrong } from "./rights";

const id = "01a22f0b-822f-7096-9d6c-b1f3837eb9d5";

describe("a target", () => {
  it("is the same in an address and in a query", () => {
    for (const text of ["instance", `space:${id}`, `channel:${id}`, `host:${id}`]) {
      const target = parseTarget(text);
      expect(target === undefined ? undefined : targetText(target)).toBe(text);
    }
  });

  it("is none for anything else", () => {
    for (const text of ["", "space", "space:1", `user:${id}`, `channel:${id}/x`])
      expect(parseTarget(text)).toBeUndefined();
  });
});

describe("a strong change", () => {
  it.each([
    ["channel", "write", [], false],
    ["channel", "manage", [], true],
    ["instance", "read", [], true],
    ["space", "read", ["export"], true],
    ["space", "trigger", ["files.upload"], false],
  ] as const)("on a %s with %s and %j: %s", (target, level, capabilities, strong) => {
    expect(isStrong(target, level, capabilities)).toBe(strong);
  });
});

describe("a duration", () => {
  it("is written in the largest unit in which it is whole", () => {
    expect(splitDuration(5_400_000)).toEqual({ amount: 90, unit: "min" });
    expect(durationWords(86_400_000)).toBe("1 day");
    expect(durationWords(0)).toBe("0 seconds");
    expect(durationWords(1_500)).toBe("1500 milliseconds");
  });
});

describe("a setting", () => {
  it("has a name and a value people can read", () => {
    expect(settingName("messaging.edit_window")).toBe("Edit window");
    expect(valueWords("bool", false)).toBe("off");
    expect(valueWords("string_list", [])).toBe("none");
    expect(valueWords("string", "")).toBe("empty");
    expect(rangeWords("duration", { min: 60_000, max: 3_600_000 })).toBe("From 1 minute to 1 hour.");
    expect(rangeWords("int", undefined)).toBeUndefined();
  });
});

describe("the directory", () => {
  function withAnswers(answers: Readonly<Record<string, unknown>>) {
    const asked: string[] = [];
    const get = async (path: string) => {
      asked.push(path);
      if (answers[path] === undefined) throw new Error("no answer");
      return { data: answers[path] };
    };
    const api = { GET: get };
    return { directory: new Directory(api as unknown as ApiClient), asked };
  }
  const settled = () => new Promise((resolve) => setTimeout(resolve));

  it("asks for a name once, whatever asks", async () => {
    const { directory, asked } = withAnswers({
      "/principals/{principal_id}": { id, kind: "person", handle: "ana", display_name: "Ana", status: "active" },
    });
    directory.want(id);
    directory.want(id);
    await settled();
    directory.want(id);
    expect(asked).toHaveLength(1);
    expect(directory.known().members.get(id)?.name).toBe("Ana");
  });

  it("says when the places could not be loaded", async () => {
    const { directory } = withAnswers({});
    directory.load();
    await settled();
    expect(directory.known().places).toBe("failed");
  });

  it("names places in words, and unknown ones without their identifier", async () => {
    const { directory } = withAnswers({
      "/spaces": { items: [{ id, name: "Team", position_key: "a" }], next_cursor: null },
      "/channels": { items: [], next_cursor: null },
    });
    directory.load();
    await settled();
    expect(placeName(directory.known(), { kind: "space", id })).toBe("Team");
    expect(placeName(directory.known(), { kind: "channel", id })).toBe("a channel");
  });
});
