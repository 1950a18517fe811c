// SPDX-License-Identifier: Apache-2.0
// @vitest-environment jsdom
import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, describe, expect, it } from "vitest";
import { ApiError, NetworkError } from "../../api/problem";
import type { Discovery } from "../../api/types";
import type { Login, LoginOutcome } from "../../auth/login";
import { PasskeyError } from "../../auth/passkeys";
import { EnrollPage } from "./EnrollPage";
import { SignInPage } from "./SignInPage";

afterEach(cleanup);

const discovery = {
  name: "Hut",
  setup_complete: true,
  branding: { login_message: "" },
  login_options: [
    { driver: "passkey", label: "Passkey" },
    { driver: "local", label: "Password" },
  ],
  password_policy: { min_length: 12, max_length: 256 },
} as Discovery;

const outcome = { status: "ok" } as LoginOutcome;

function login(change: Partial<Login>): Login {
  const no = () => Promise.reject(new Error("not asked"));
  return {
    password: no,
    beginCode: no,
    completeCode: no,
    beginExternal: no,
    completeExternal: no,
    poll: no,
    ...change,
  };
}

function showSignIn(password: Login["password"], entered: LoginOutcome[] = []) {
  render(
    <SignInPage
      discovery={discovery}
      login={login({ password })}
      reason="none"
      onOutcome={async (result) => {
        entered.push(result);
      }}
      onCode={() => {}}
    />,
  );
  fireEvent.change(screen.getByLabelText("Handle or e-mail"), { target: { value: " ana " } });
  fireEvent.change(screen.getByLabelText("Password"), { target: { value: "secret" } });
  fireEvent.click(screen.getByRole("button", { name: "Sign in" }));
}

describe("sign-in", () => {
  it("hands the outcome on, with the name as it is meant", async () => {
    const entered: LoginOutcome[] = [];
    const asked: string[][] = [];
    showSignIn(async (...given) => {
      asked.push(given);
      return outcome;
    }, entered);
    await expect.poll(() => entered).toEqual([outcome]);
    expect(asked).toEqual([["ana", "secret"]]);
  });

  it("says one sentence when it is refused and stays in the password", async () => {
    const refused = new ApiError({ status: 401, code: "unauthenticated", reason: "login_failed", errors: [] });
    showSignIn(() => Promise.reject(refused));
    const field = screen.getByLabelText("Password");
    await screen.findByText("Name or password is not right.");
    expect(document.activeElement).toBe(field);
    expect(field.getAttribute("aria-invalid")).toBe("true");
  });

  it("tells a server that is away from a wrong password", async () => {
    showSignIn(() => Promise.reject(new NetworkError("gone")));
    await screen.findByText(/cannot be reached/);
  });
});

describe("a passkey", () => {
  function show(passkey: Login["passkey"], entered: LoginOutcome[] = []) {
    render(
      <SignInPage
        discovery={discovery}
        login={login({ passkey })}
        reason="none"
        onOutcome={async (result) => {
          entered.push(result);
        }}
        onCode={() => {}}
      />,
    );
  }

  it("signs in without a name", async () => {
    const entered: LoginOutcome[] = [];
    show(async () => outcome, entered);
    fireEvent.click(screen.getByRole("button", { name: "Use a passkey" }));
    await expect.poll(() => entered).toEqual([outcome]);
  });

  it("that was not chosen leaves the other ways open", async () => {
    show(() => Promise.reject(new PasskeyError("dismissed", undefined)));
    fireEvent.click(screen.getByRole("button", { name: "Use a passkey" }));
    await screen.findByText("No passkey was used. Try again, or choose another way.");
    expect(screen.getByLabelText("Password")).toBeDefined();
  });

  it("that is not known is not called a wrong password", async () => {
    const refused = new ApiError({ status: 401, code: "unauthenticated", reason: "login_failed", errors: [] });
    show(() => Promise.reject(refused));
    fireEvent.click(screen.getByRole("button", { name: "Use a passkey" }));
    await screen.findByText("This passkey is not known here. Use another one, or another way.");
  });

  it("is not offered where the browser has none", () => {
    show(undefined);
    expect(screen.queryByRole("button", { name: "Use a passkey" })).toBeNull();
  });
});

describe("an instance without passwords", () => {
  const passwordless = { ...discovery, login_options: [{ driver: "passkey", label: "Passkey" }] } as Discovery;
  const show = (given: Login) =>
    render(
      <SignInPage discovery={passwordless} login={given} reason="none" onOutcome={async () => {}} onCode={() => {}} />,
    );

  it("asks for none", () => {
    show(login({ passkey: async () => outcome }));
    expect(screen.queryByLabelText("Password")).toBeNull();
    expect(screen.queryByText("or")).toBeNull();
    expect(screen.getByRole("button", { name: "Use a passkey" })).toBeDefined();
  });

  it("says so to a browser that has no passkeys", () => {
    show(login({}));
    expect(screen.getByText(/cannot use passkeys/)).toBeDefined();
  });
});

describe("a code", () => {
  it("of a link is opened at once, and sets a password that is long enough", async () => {
    const entered: LoginOutcome[] = [];
    const flow = {
      flow_id: "f",
      expires_at: "",
      purpose: "first_owner" as const,
      principal: { id: "p", handle: "ana", display_name: "Ana" },
    };
    render(
      <EnrollPage
        discovery={{ ...discovery, setup_complete: false }}
        login={login({ beginCode: async () => flow, completeCode: async () => outcome })}
        code="ABC"
        onOutcome={async (result) => {
          entered.push(result);
        }}
      />,
    );
    await screen.findByRole("heading", { name: "Hello, Ana" });
    fireEvent.change(screen.getByLabelText("Password"), { target: { value: "short" } });
    fireEvent.click(screen.getByRole("button", { name: "Take the keys" }));
    await screen.findByText("Use at least 12 characters.");
    expect(entered).toEqual([]);
    fireEvent.change(screen.getByLabelText("Password"), { target: { value: "a long enough phrase" } });
    fireEvent.click(screen.getByRole("button", { name: "Take the keys" }));
    await expect.poll(() => entered).toEqual([outcome]);
  });

  it("can begin with a passkey", async () => {
    const entered: LoginOutcome[] = [];
    const flow = {
      flow_id: "f",
      expires_at: "",
      purpose: "invite" as const,
      methods: ["passkey", "password"],
      principal: { id: "p", handle: "ana", display_name: "Ana" },
    };
    render(
      <EnrollPage
        discovery={discovery}
        login={login({ beginCode: async () => flow, completeCodeByPasskey: async () => outcome })}
        code="ABC"
        onOutcome={async (result) => {
          entered.push(result);
        }}
      />,
    );
    fireEvent.click(await screen.findByRole("button", { name: "Make a passkey" }));
    await expect.poll(() => entered).toEqual([outcome]);
  });

  it("that is not valid is refused in words", async () => {
    const refused = new ApiError({ status: 401, code: "unauthenticated", reason: "login_failed", errors: [] });
    render(
      <EnrollPage
        discovery={discovery}
        login={login({ beginCode: () => Promise.reject(refused) })}
        code="BAD"
        onOutcome={async () => {}}
      />,
    );
    await screen.findByText("This code is not valid, was used, or has expired.");
  });
});
