// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { isOwnAddress } from "./returnTo";

describe("an address to come back to", () => {
  it.each(["/", "/console/access/space:1", "/device?code=ABCD-EFGH", "/c/1?thread=2"])("may be %s", (address) => {
    expect(isOwnAddress(address)).toBe(true);
  });

  it.each(["//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)", "", "/a b"])(
    "is never %s",
    (address) => {
      expect(isOwnAddress(address)).toBe(false);
    },
  );
});
