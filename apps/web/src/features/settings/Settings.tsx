// SPDX-License-Identifier: Apache-2.0
import { type ComponentType, useEffect } from "react";
import { useLocation } from "wouter";
import { Button } from "../../ui/Button";
import { Frame, type FrameGroup } from "../../ui/Frame";
import { Empty } from "../../ui/Notice";
import { AppearancePage } from "./AppearancePage";
import { DevicesPage } from "./DevicesPage";
import { ProfilePage } from "./ProfilePage";
import { SecurityPage } from "./SecurityPage";
import { TokensPage } from "./TokensPage";

const home = "/settings";

const groups: readonly FrameGroup[] = [
  {
    title: "You",
    links: [
      { href: "/settings/profile", label: "Profile", icon: "user" },
      { href: "/settings/security", label: "Signing in", icon: "key" },
      { href: "/settings/devices", label: "Devices and sessions", icon: "devices" },
      { href: "/settings/tokens", label: "API tokens", icon: "terminal-window" },
    ],
  },
  { title: "This browser", links: [{ href: "/settings/appearance", label: "Appearance", icon: "palette" }] },
];

const pages: Readonly<Record<string, ComponentType>> = {
  "/settings/profile": ProfilePage,
  "/settings/security": SecurityPage,
  "/settings/devices": DevicesPage,
  "/settings/tokens": TokensPage,
  "/settings/appearance": AppearancePage,
};

/** What a person decides for themselves, page by page. */
export function Settings({ product }: { readonly product: string }) {
  const [path, navigate] = useLocation();
  const known = groups.flatMap((group) => group.links).find((link) => link.href === path);
  const Shown = pages[path];
  const atHome = path === home;

  useEffect(() => {
    document.title = `${known?.label ?? "Settings"} – ${product}`;
  }, [known, product]);
  useEffect(() => {
    // Beside each other the list alone would leave the page empty.
    if (atHome && matchMedia("(width >= 720px)").matches) navigate("/settings/profile", { replace: true });
  }, [atHome, navigate]);

  return (
    <Frame
      label="Settings"
      title="Settings"
      back={{ href: "/", label: "Back to the chat" }}
      home={home}
      groups={groups}
      current={atHome ? undefined : path}
      onGo={navigate}
    >
      {Shown === undefined ? (
        atHome ? null : (
          <Empty title="Nothing here" action={<Button onClick={() => navigate(home)}>All settings</Button>}>
            This page does not exist.
          </Empty>
        )
      ) : (
        <Shown />
      )}
    </Frame>
  );
}
