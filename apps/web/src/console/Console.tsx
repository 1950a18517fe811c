// SPDX-License-Identifier: Apache-2.0
import { lazy, type ReactNode, Suspense, useEffect, useState } from "react";
import { useLocation, useRoute } from "wouter";
import type { Self } from "../api/types";
import { useAccount } from "../client/Account";
import { Button } from "../ui/Button";
import { Frame, type FrameGroup } from "../ui/Frame";
import { Empty } from "../ui/Notice";
import { Waiting } from "../ui/Page";
import { Directory, DirectoryContext } from "./directory";
import { SelfContext } from "./self";

const PeoplePage = lazy(async () => ({ default: (await import("./people/PeoplePage")).PeoplePage }));
const PersonPage = lazy(async () => ({ default: (await import("./people/PersonPage")).PersonPage }));
const GroupsPage = lazy(async () => ({ default: (await import("./groups/GroupsPage")).GroupsPage }));
const PlacesPage = lazy(async () => ({ default: (await import("./access/PlacesPage")).PlacesPage }));
const PlacePage = lazy(async () => ({ default: (await import("./access/PlacePage")).PlacePage }));
const GroupPage = lazy(async () => ({ default: (await import("./groups/GroupPage")).GroupPage }));
const AuditPage = lazy(async () => ({ default: (await import("./audit/AuditPage")).AuditPage }));
const ProvidersPage = lazy(async () => ({ default: (await import("./providers/ProvidersPage")).ProvidersPage }));
const FlagsPage = lazy(async () => ({ default: (await import("./instance/FlagsPage")).FlagsPage }));
const BrandingPage = lazy(async () => ({ default: (await import("./instance/BrandingPage")).BrandingPage }));
const KeysPage = lazy(async () => ({ default: (await import("./instance/KeysPage")).KeysPage }));
const InstancePage = lazy(async () => ({ default: (await import("./instance/InstancePage")).InstancePage }));

const home = "/console/";

interface ConsolePage {
  readonly href: string;
  readonly label: string;
  readonly icon: FrameGroup["links"][number]["icon"];
  /** Pages for owners alone are not shown to others. */
  readonly owner: boolean;
}

const pages: readonly { readonly title: string; readonly links: readonly ConsolePage[] }[] = [
  {
    title: "Who and what",
    links: [
      { href: "/console/people", label: "People", icon: "users", owner: true },
      { href: "/console/groups", label: "Groups", icon: "users-three", owner: false },
      { href: "/console/access", label: "Access", icon: "tree-structure", owner: false },
      { href: "/console/providers", label: "Sign-in providers", icon: "plugs-connected", owner: true },
    ],
  },
  {
    title: "Instance",
    links: [
      { href: "/console/audit", label: "Audit log", icon: "scroll", owner: true },
      { href: "/console/settings", label: "Settings", icon: "sliders-horizontal", owner: true },
      { href: "/console/branding", label: "Branding", icon: "palette", owner: true },
      { href: "/console/flags", label: "Feature flags", icon: "flag", owner: true },
      { href: "/console/keys", label: "Signing keys", icon: "key", owner: true },
    ],
  },
];

/** The pages for those who set up and answer for the instance. */
export function Console({ self }: { readonly self: Self }) {
  const { api, discovery } = useAccount();
  const [directory] = useState(() => new Directory(api));
  const [path, navigate] = useLocation();
  const groups = pages
    .map(({ title, links }) => ({ title, links: links.filter((link) => self.owner === true || !link.owner) }))
    .filter((group) => group.links.length > 0);
  const current = groups
    .flatMap((group) => group.links)
    .find((link) => path === link.href || path.startsWith(`${link.href}/`));
  const atHome = path === home || path === "/console";
  const first = groups[0]?.links[0]?.href ?? home;

  useEffect(() => directory.load(), [directory]);
  useEffect(() => {
    document.title = `${current?.label ?? "Console"} – ${discovery.product_name}`;
  }, [current, discovery]);
  useEffect(() => {
    if (atHome && matchMedia("(width >= 720px)").matches) navigate(first, { replace: true });
  }, [atHome, first, navigate]);

  return (
    <DirectoryContext value={directory}>
      <SelfContext value={self}>
        <Frame
          label="Console"
          title="Console"
          back={{ href: "/", label: "Back to the chat" }}
          home={home}
          groups={groups}
          current={atHome ? undefined : (current?.href ?? path)}
          onGo={navigate}
        >
          <Suspense fallback={<Waiting />}>
            {atHome ? null : current === undefined ? (
              <Empty title="Nothing here" action={<Button onClick={() => navigate(first)}>To the console</Button>}>
                This page does not exist, or it is not available to you.
              </Empty>
            ) : (
              <Shown page={current.href} />
            )}
          </Suspense>
        </Frame>
      </SelfContext>
    </DirectoryContext>
  );
}

function Shown({ page }: { readonly page: string }): ReactNode {
  const [, person] = useRoute("/console/people/:id");
  const [, group] = useRoute("/console/groups/:id");
  const [, place] = useRoute("/console/access/:target");
  switch (page) {
    case "/console/people":
      return person === null ? <PeoplePage /> : <PersonPage key={person.id} id={person.id} />;
    case "/console/groups":
      return group === null ? <GroupsPage /> : <GroupPage key={group.id} id={group.id} />;
    case "/console/access":
      return place === null ? <PlacesPage /> : <PlacePage key={place.target} target={place.target} />;
    case "/console/providers":
      return <ProvidersPage />;
    case "/console/audit":
      return <AuditPage />;
    case "/console/branding":
      return <BrandingPage />;
    case "/console/flags":
      return <FlagsPage />;
    case "/console/keys":
      return <KeysPage />;
    case "/console/settings":
      return <InstancePage />;
    default:
      return null;
  }
}
