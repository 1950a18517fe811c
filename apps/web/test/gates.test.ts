// SPDX-License-Identifier: Apache-2.0
//
// Rules of the source that no compiler knows. Each is shown to refuse what it forbids.
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import resolvedTokens from "../../../design/build/tokens.resolved.json";

const src = resolve(import.meta.dirname ?? ".", "..", "src");

function files(folder: string, pattern: RegExp): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => pattern.test(name) && !name.includes("api/gen"))
    .map((name) => join(folder, name));
}

/** Which folder may import which. `ui` knows nothing of the product; features do not know each other. */
const allowed: Readonly<Record<string, readonly string[]>> = {
  ui: [],
  text: ["ui"],
  api: ["api", "auth", "engine", "store"],
  auth: ["api"],
  store: ["api", "engine"],
  engine: ["api", "auth", "store"],
  client: ["api", "auth", "engine", "store", "ui"],
  features: ["api", "auth", "client", "engine", "store", "text", "ui"],
  console: ["api", "client", "text", "ui"],
  app: ["api", "auth", "client", "console", "engine", "features", "store", "text", "ui"],
};

function areaOf(path: string): string {
  const [area, feature] = relative(src, path).split("/");
  return area === "features" ? `features/${feature}` : (area ?? "");
}

/** Says what is wrong with an import, if anything. */
function fault(from: string, to: string): string | undefined {
  const [source, target] = [areaOf(from), areaOf(to)];
  if (source === target) return undefined;
  const area = source.split("/")[0] ?? "";
  const goal = target.split("/")[0] ?? "";
  if (area === "features" && goal === "features") return `${source} must not know ${target}`;
  return allowed[area]?.includes(goal) === true ? undefined : `${source} must not import ${target}`;
}

describe("imports", () => {
  it("go downward only", () => {
    const faults = files(src, /\.tsx?$/)
      .filter((path) => !path.includes(".test."))
      .flatMap((path) =>
        [...readFileSync(path, "utf8").matchAll(/(?:from|import\()\s*"(\.[^"]+)"/g)].flatMap(
          ([, target]) => fault(path, resolve(dirname(path), target ?? "")) ?? [],
        ),
      );
    expect(faults).toEqual([]);
  });

  it("are refused when they go up or sideways", () => {
    expect(fault(join(src, "ui/Button.tsx"), join(src, "store/state"))).toBeDefined();
    expect(fault(join(src, "features/runs/a"), join(src, "features/people/b"))).toBeDefined();
    expect(fault(join(src, "engine/a"), join(src, "app/b"))).toBeDefined();
  });
});

describe("markup", () => {
  const forbidden =
    /dangerouslySetInnerHTML|\.innerHTML|\.outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|style=\{/;

  it("is never made from strings and never styled inline", () => {
    const found = files(src, /\.tsx?$/).filter((path) => forbidden.test(readFileSync(path, "utf8")));
    expect(found.filter((path) => !path.includes(".test."))).toEqual([]);
  });

  it("in strings would be found", () => {
    expect(forbidden.test("box.innerHTML = text")).toBe(true);
  });
});

describe("styles", () => {
  const physical =
    /(?:margin|padding|border)-(?:left|right)|[\s;{](?:left|right)\s*:|text-align:\s*(?:left|right)|#[0-9a-f]{3,8}\b/i;

  it("use logical sides and the colours of the tokens", () => {
    const found = files(src, /\.css$/)
      .filter((path) => !path.endsWith("tokens.css"))
      .flatMap((path) =>
        readFileSync(path, "utf8")
          .split("\n")
          .filter((line) => physical.test(line) && !line.includes("color-mix(in srgb, #14120e")),
      );
    expect(found).toEqual([]);
  });
});

function luminance(hex: string): number {
  const [r, g, b] = [1, 3, 5].map((at) => {
    const value = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
    return value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * (r ?? 0) + 0.7152 * (g ?? 0) + 0.0722 * (b ?? 0);
}

function contrast(a: string, b: string): number {
  const [light, dark] = [luminance(a), luminance(b)].sort((x, y) => y - x);
  return ((light ?? 0) + 0.05) / ((dark ?? 0) + 0.05);
}

describe.each(["light", "dark"] as const)("contrast in the %s theme", (theme) => {
  const color = (name: keyof typeof resolvedTokens.color) => resolvedTokens.color[name][theme];
  const papers = ["paper", "paper-sunk", "paper-pressed"] as const;

  it.each([
    ["ink", 11.9],
    ["ink-soft", 5.6],
    ["ink-faint", 4.5],
    ["spruce", 4.5],
    ["ember", 4.5],
    ["ok", 4.5],
    ["warn", 4.5],
    ["danger", 4.5],
    ["info", 4.5],
    ["rule-strong", 3],
  ] as const)("%s reaches %d on every paper", (name, ratio) => {
    for (const paper of papers) expect(contrast(color(name), color(paper))).toBeGreaterThanOrEqual(ratio);
  });

  it("holds for words on their own soft ground and on spruce", () => {
    for (const name of ["spruce", "ember", "ok", "warn", "danger", "info"] as const) {
      expect(contrast(color(name), color(`${name}-soft`))).toBeGreaterThanOrEqual(4.5);
    }
    expect(contrast(color("on-spruce"), color("spruce"))).toBeGreaterThanOrEqual(4.5);
    expect(contrast(color("ink"), color("mention"))).toBeGreaterThanOrEqual(7);
  });

  it("holds for letters on every category", () => {
    const letters = theme === "light" ? "#FFFFFF" : color("paper");
    for (const category of Object.values(resolvedTokens.category)) {
      expect(contrast(letters, category[theme])).toBeGreaterThanOrEqual(5.5);
    }
  });
});
