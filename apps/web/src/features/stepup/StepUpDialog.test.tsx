// SPDX-License-Identifier: Apache-2.0
// @vitest-environment jsdom
import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { NetworkError } from "../../api/problem";
import { PasskeyError } from "../../auth/passkeys";
import type { StepUpMethods, StepUpProofs } from "../../auth/stepUp";
import { StepUpDialog } from "./StepUpDialog";

beforeAll(() => {
  // jsdom draws no dialogs.
  HTMLDialogElement.prototype.showModal = function show() {
    this.open = true;
  };
  HTMLDialogElement.prototype.close = function close() {
    this.open = false;
  };
});
afterEach(cleanup);

function ask(methods: StepUpMethods, change: Partial<StepUpProofs> = {}): boolean[] {
  const done: boolean[] = [];
  const no = () => Promise.reject(new Error("not asked"));
  const proofs = { methods: async () => methods, password: no, passkey: no, ...change };
  render(<StepUpDialog proofs={proofs} onDone={(proved) => done.push(proved)} />);
  return done;
}

describe("a step-up", () => {
  it("asks for a passkey first, with the password behind it", async () => {
    const done = ask({ passkey: true, password: true }, { passkey: async () => {} });
    const button = await screen.findByRole("button", { name: "Use a passkey" });
    expect(document.activeElement).toBe(button);
    expect(screen.getByLabelText("Or your password")).toBeDefined();
    fireEvent.click(button);
    await expect.poll(() => done).toEqual([true]);
  });

  it("stays open when no passkey was used", async () => {
    const done = ask(
      { passkey: true, password: true },
      { passkey: () => Promise.reject(new PasskeyError("dismissed", 0)) },
    );
    fireEvent.click(await screen.findByRole("button", { name: "Use a passkey" }));
    await screen.findByText(/No passkey was used/);
    expect(done).toEqual([]);
  });

  it("takes the password of who has no passkey", async () => {
    const given: string[] = [];
    const done = ask(
      { passkey: false, password: true },
      {
        password: async (password) => {
          given.push(password);
        },
      },
    );
    fireEvent.change(await screen.findByLabelText("Password"), { target: { value: "secret" } });
    fireEvent.click(screen.getByRole("button", { name: "Confirm" }));
    await expect.poll(() => done).toEqual([true]);
    expect(given).toEqual(["secret"]);
    expect(screen.queryByRole("button", { name: "Use a passkey" })).toBeNull();
  });

  it("says what is missing, and when nobody answers", async () => {
    ask({ passkey: false, password: false });
    await screen.findByText(/neither a passkey nor a password/);
    cleanup();
    ask({ passkey: false, password: true }, { methods: () => Promise.reject(new NetworkError("gone")) });
    await screen.findByText(/cannot be reached/);
  });
});
