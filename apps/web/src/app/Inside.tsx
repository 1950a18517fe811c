// SPDX-License-Identifier: Apache-2.0
import { lazy, Suspense, useEffect } from "react";
import { useLocation } from "wouter";
import { useClient } from "../client/Client";
import { useStore } from "../client/useStore";
import { Part } from "./PlainError";
import { Shell } from "./Shell";

// The settings are not part of the first load: most visits never see them.
const Settings = lazy(async () => ({ default: (await import("../features/settings/Settings")).Settings }));

const PairingPage = lazy(async () => ({ default: (await import("../features/devices/PairingPage")).PairingPage }));

/** What a signed-in person sees: the chat, or the settings. The engine runs under both. */
export function Inside() {
  const [path] = useLocation();
  const { engine } = useClient();
  const product = useStore((state) => state.instance?.name ?? "Bothy");
  const settings = path === "/settings" || path.startsWith("/settings/");
  const aside = settings || path === "/device";
  useLifecycle();
  useEffect(() => {
    if (aside) engine.setFocus([], false);
  }, [engine, aside]);
  if (!aside) return <Shell />;
  return (
    <Part name="This page">
      <Suspense fallback={null}>{settings ? <Settings product={product} /> : <PairingPage />}</Suspense>
    </Part>
  );
}

/** Stores the state when the tab goes away, and hurries when it or the network comes back. */
function useLifecycle(): void {
  const { engine } = useClient();
  useEffect(() => {
    const onHide = () => (document.visibilityState === "hidden" ? engine.flush() : engine.hurry());
    const onOnline = () => engine.hurry();
    const onLeave = () => engine.flush();
    document.addEventListener("visibilitychange", onHide);
    addEventListener("online", onOnline);
    addEventListener("pagehide", onLeave);
    return () => {
      document.removeEventListener("visibilitychange", onHide);
      removeEventListener("online", onOnline);
      removeEventListener("pagehide", onLeave);
    };
  }, [engine]);
}
