// SPDX-License-Identifier: Apache-2.0
import fc from "fast-check";
import { renderToStaticMarkup } from "react-dom/server";
import { describe, expect, it } from "vitest";
import { dialect, readMention, safeHref } from "./dialect";
import { decodeEntity } from "./entities";
import { Markdown } from "./Markdown";

const id = "0199c2a0-0010-7000-8000-000000000010";

function html(text: string): string {
  const markup = renderToStaticMarkup(
    <Markdown text={text} renderMention={(mention) => <b>{`${mention.kind}:${mention.id}`}</b>} />,
  );
  return markup.replace(/^<div[^>]*>|<\/div>$/g, "").replaceAll(' dir="auto"', "");
}

describe("the dialect", () => {
  it.each([
    ["plain", "<p>plain</p>"],
    ["one\ntwo", "<p>one<br/>two</p>"],
    ["**bold** *soft* ~~gone~~ `code`", "<p><strong>bold</strong> <em>soft</em> <del>gone</del> <code>code</code></p>"],
    ["# Title", "<h4>Title</h4>"],
    ["Title\n===", "<p>Title<br/>===</p>"],
    ["    not code", "<p>not code</p>"],
    ["> said\n> twice", "<blockquote><p>said<br/>twice</p></blockquote>"],
    ["- a\n- b", "<ul><li><p>a</p></li><li><p>b</p></li></ul>"],
    ["3. c", '<ol start="3"><li><p>c</p></li></ol>'],
    ["\\*no\\*", "<p>*no*</p>"],
    ["a &amp; b &#8364; &nope;", "<p>a &amp; b € &amp;nope;</p>"],
    [
      "[ref]: https://x.example\n\n[ref]",
      '<p>[ref]: <a href="https://x.example" target="_blank" rel="noopener noreferrer">https://x.example</a></p><p>[ref]</p>',
    ],
  ])("%j", (text, expected) => {
    expect(html(text)).toBe(expected);
  });

  it("shows raw HTML as the text it is", () => {
    const shown = html("<script>alert(1)</script> <b onclick=x>hi</b>");
    expect(shown).not.toMatch(/<script|<b /);
    expect(shown).toContain("&lt;script&gt;");
  });

  it("links only where it is safe", () => {
    expect(html("[x](https://a.example)")).toContain('href="https://a.example"');
    expect(html("[x](/c/1)")).toContain('<a href="/c/1">');
    expect(html("<https://a.example/b>")).toContain('href="https://a.example/b"');
    for (const bad of ["javascript:alert(1)", "data:text/html,x", "//evil.example", "/\\evil.example", "vbscript:x"]) {
      expect(html(`[x](${bad})`)).not.toContain("href");
    }
  });

  it("never loads a picture", () => {
    expect(html("![cat](https://a.example/cat.png)")).not.toContain("<img");
    expect(html("![cat](https://a.example/cat.png)")).toContain(">cat</a>");
  });

  it("hides spoilers until they are asked for", () => {
    expect(html("||the end||")).toContain("<button");
  });

  it("draws mentions, but not in code", () => {
    expect(html(`hi <@${id}>!`)).toBe(`<p>hi <b>principal:${id}</b>!</p>`);
    expect(html(`\`<@${id}>\``)).toBe(`<p><code>&lt;@${id}&gt;</code></p>`);
  });

  it("keeps the text of a fence as it stands, open or closed", () => {
    expect(html("```go\na\n\n  b\n```")).toContain("a\n\n  b</code>");
    expect(html("```go\na\n")).toContain(">a</code>");
    expect(html("> ```\n> a\n> b\n> ```")).toContain("a\nb</code>");
  });

  it("draws tables with their heads", () => {
    expect(html("| a | b |\n|---|---|\n| 1 | 2 |")).toContain(
      "<th>a</th><th>b</th></tr></thead><tbody><tr><td>1</td><td>2</td>",
    );
  });

  it("draws tasks as boxes that cannot be pressed", () => {
    expect(html("- [x] done")).toMatch(/<input type="checkbox" [^>]*disabled=""/);
  });
});

describe("hostile text", () => {
  it.each(["[", "*", ">", "_", "`", "(", "|", "![", "<", "||", "~~", "@", "\\"])(
    "20,000 times %j is parsed in time",
    (piece) => {
      const start = performance.now();
      dialect.parse(piece.repeat(20_000));
      expect(performance.now() - start).toBeLessThan(1_000);
    },
  );

  it("never throws and never links to a scheme that is not allowed", () => {
    const token = fc.constantFrom(
      "[a](",
      "javascript:",
      "https://x.y",
      ")",
      "<",
      ">",
      "**",
      "`",
      "||",
      "\n",
      "- ",
      "> ",
      "|",
      "![",
      "@",
      "&lt;",
      " ",
    );
    fc.assert(
      fc.property(fc.array(token, { maxLength: 40 }), (tokens) => {
        for (const [, href] of html(tokens.join("")).matchAll(/href="([^"]*)"/g))
          expect(href).toMatch(/^(https?:|mailto:|\/)/);
      }),
    );
  });
});

it("reads mention tokens", () => {
  expect(readMention(`<@_${id}>`)).toEqual({ kind: "principal", id });
  expect(readMention(`<@&${id}>`)).toEqual({ kind: "group", id });
  expect(readMention(`<#${id}>`)).toEqual({ kind: "channel", id });
  expect(readMention("<@here>")).toEqual({ kind: "broadcast", id: "here" });
});

it("decodes entities and leaves unknown ones", () => {
  expect(decodeEntity("&#x1F525;")).toBe("🔥");
  expect(decodeEntity("&#xD800;")).toBe("\ufffd");
  expect(decodeEntity("&foo;")).toBe("&foo;");
});

it("completes addresses without a scheme", () => {
  expect(safeHref("www.example.org")).toBe("https://www.example.org");
  expect(safeHref("a@b.example")).toBe("mailto:a@b.example");
});
