// SPDX-License-Identifier: Apache-2.0
import fc from "fast-check";
import { renderToStaticMarkup } from "react-dom/server";
import { describe, expect, it } from "vitest";
import { readMention } from "./dialect";
import { decodeEntity } from "./entities";
import { safeHref } from "./links";
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

  it("shows the label of a link that may not be followed, and no link", () => {
    expect(html("a [b](javascript:alert(1)) c")).toBe("<p>a b c</p>");
    expect(html("[a](javascript&#58;alert(1)) [b](/&#47;evil.example)")).toBe("<p>a b</p>");
  });

  it("finds bare addresses and leaves the punctuation around them", () => {
    expect(html("(see https://a.example/x_(y).)")).toContain('href="https://a.example/x_(y)"');
    expect(html("xhttps://a.example www.a.example a@b.example")).not.toContain("href");
    expect(html("<a@b.example>")).toContain('href="mailto:a@b.example"');
  });

  it("puts no link into a link", () => {
    expect(html("[a [b](/b) c](/c)").match(/<a /g)).toHaveLength(1);
    expect(html("[a](/a)[b](/b)").match(/<a /g)).toHaveLength(2);
    expect(html("[https://a.example](/c)").match(/<a /g)).toHaveLength(1);
  });

  it("keeps marks that reach over brackets which are no link", () => {
    expect(html("*a [b* c]")).toBe("<p><em>a [b</em> c]</p>");
    expect(html("[a][b](/c)")).toContain("<p>[a]<a ");
  });

  it("reads marks beside characters outside the basic plane", () => {
    expect(html("👍**bold**")).toBe("<p>👍<strong>bold</strong></p>");
    expect(html("a**👍**b")).toBe("<p>a**👍**b</p>");
    expect(html("a |||b||")).toBe("<p>a |||b||</p>");
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

  it("keeps empty cells in their column and drops what is beyond the head", () => {
    expect(html("| a | b |\n|---|---|\n|  | 2 | 3 |\n| `x\\|y` |")).toContain(
      "<tr><td></td><td>2</td></tr><tr><td><code>x|y</code></td></tr>",
    );
  });

  it("opens no block at a line indented like code", () => {
    expect(html("    # a\n\n    - b\n\n\t> c\n\n    ```")).toBe("<p># a</p><p>- b</p><p>&gt; c</p><p>```</p>");
    expect(html("- a\n\n  - b")).toContain("<ul><li><p>b</p></li></ul>");
  });

  it("draws tasks as boxes that cannot be pressed", () => {
    expect(html("- [x] done")).toMatch(/<input type="checkbox" [^>]*disabled=""/);
  });
});

describe("hostile text", () => {
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
  expect(
    ["&auml;", "&amp;", "&apos;", "&nbsp;", "&Omega;", "&rarr;", "&hellip;", "&diams;"].map(decodeEntity).join(""),
  ).toBe("ä&'\u00a0Ω→…♦");
  expect(decodeEntity("&foo;")).toBe("&foo;");
  expect(decodeEntity("&constructor;")).toBe("&constructor;");
});

it("follows addresses of the allowed kinds alone", () => {
  for (const good of ["https://a.example", "HTTP://a.example", "mailto:a@b.example", "/t/1"]) {
    expect(safeHref(good)).toBe(good);
  }
  for (const bad of ["www.example.org", "a@b.example", "https://", "javascript:x", "//a.example", "/\\a.example", ""]) {
    expect(safeHref(bad)).toBeUndefined();
  }
});
