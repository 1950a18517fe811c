// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { clashes, merged, type ProfileForm, patchOf } from "./profile";

const base: ProfileForm = {
  display_name: "Ana Lind",
  handle: "ana",
  title: "Keeper",
  pronouns: "",
  bio: "",
  time_zone: "Europe/Vienna",
  status: "",
};

describe("a change of the own profile", () => {
  it("holds what was changed and nothing else", () => {
    expect(patchOf(base, { ...base, display_name: " Ana L. " })).toEqual({ display_name: "Ana L." });
    expect(patchOf(base, { ...base, title: "Warden", bio: "x" })).toEqual({ title: "Warden", bio: "x" });
  });

  it("is none when only spaces differ", () => {
    expect(patchOf(base, { ...base, title: "Keeper " })).toBeUndefined();
  });

  it("takes a text away by null, and never a name", () => {
    expect(patchOf(base, { ...base, title: "" })).toEqual({ title: null });
    expect(patchOf({ ...base, status: "away" }, { ...base, status: " " })).toEqual({ custom_status: null });
    expect(patchOf(base, { ...base, display_name: "" })).toEqual({ display_name: "" });
  });
});

describe("a profile that was changed elsewhere too", () => {
  it("keeps what was changed here and takes over the rest", () => {
    const mine = { ...base, title: "Warden" };
    const theirs = { ...base, title: "Guide", bio: "Old hand" };
    expect(merged(base, mine, theirs)).toEqual({ ...base, title: "Warden", bio: "Old hand" });
  });

  it("names only the members that were changed on both sides to something different", () => {
    const theirs = { ...base, title: "Guide", bio: "Old hand" };
    expect(clashes(base, { ...base, title: "Warden" }, theirs)).toEqual(["title"]);
    expect(clashes(base, { ...base, title: "Guide" }, theirs)).toEqual([]);
    expect(clashes(base, { ...base, pronouns: "she" }, theirs)).toEqual([]);
  });
});
