// SPDX-License-Identifier: Apache-2.0
import type { I1Problem } from "./types";

/** One fault of a request body, addressed by a JSON pointer. */
export interface FieldFault {
  readonly pointer: string;
  readonly code: string;
  readonly message: string;
}

/** Members of a problem document (RFC 9457) that the client acts on. */
export interface ProblemDocument {
  readonly status: number;
  readonly code: string;
  readonly reason?: string | undefined;
  readonly correlationId?: string | undefined;
  readonly errors: readonly FieldFault[];
  /** With `i1_violation`: who could set a personal agent to work besides its holder, and the ways out. */
  readonly i1?: I1Problem | undefined;
  /** Milliseconds the server asks to wait. */
  readonly retryAfter?: number | undefined;
}

/** A final answer of the server that is not a success. Decide on `code` and `reason`, never on the text. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  constructor(readonly problem: ProblemDocument) {
    super(`${problem.status} ${problem.code}${problem.reason === undefined ? "" : ` (${problem.reason})`}`);
  }
}

/** The request may or may not have reached the server: no answer came. */
export class NetworkError extends Error {
  override readonly name = "NetworkError";
}

function text(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

function fault(value: unknown): FieldFault[] {
  if (typeof value !== "object" || value === null) return [];
  const { pointer, code, message } = value as Record<string, unknown>;
  return [{ pointer: text(pointer) ?? "", code: text(code) ?? "invalid", message: text(message) ?? "" }];
}

function retryAfter(header: string | null): number | undefined {
  if (header === null) return undefined;
  const seconds = Number(header);
  return Number.isFinite(seconds) ? seconds * 1000 : undefined;
}

/** Reads a problem from an answer. An answer in another form, such as a proxy's error page, becomes `internal_error`. */
export async function readProblem(response: Response): Promise<ProblemDocument> {
  let body: Record<string, unknown> = {};
  try {
    const parsed: unknown = await response.json();
    if (typeof parsed === "object" && parsed !== null) body = parsed as Record<string, unknown>;
  } catch {
    // Not JSON: the status alone says what happened.
  }
  return {
    status: response.status,
    code: text(body.code) ?? (response.status === 429 ? "rate_limited" : "internal_error"),
    reason: text(body.reason),
    correlationId: text(body.correlation_id),
    errors: Array.isArray(body.errors) ? body.errors.flatMap(fault) : [],
    i1: typeof body.i1 === "object" && body.i1 !== null ? (body.i1 as I1Problem) : undefined,
    retryAfter: retryAfter(response.headers.get("Retry-After")),
  };
}

/** True for answers that say nothing about the request itself, so that the same bytes are worth sending again. */
export function isTransient(problem: ProblemDocument): boolean {
  return (
    problem.status >= 500 || problem.status === 408 || problem.status === 429 || problem.code === "request_in_progress"
  );
}
