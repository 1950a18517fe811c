// SPDX-License-Identifier: Apache-2.0

/** Requests that wait for a fresh proof. However many wait, the person is asked once. */
export class StepUpQueue {
  #waiting: ((proved: boolean) => void)[] = [];
  readonly #listeners = new Set<() => void>();

  /** Asks the person; resolves to whether the proof was given. */
  ask(): Promise<boolean> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      this.#tell();
    });
  }

  /** Answers everybody who waits. */
  settle(proved: boolean): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve(proved);
    this.#tell();
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** True while the dialog shall be shown. */
  readonly isAsking = (): boolean => this.#waiting.length > 0;

  #tell(): void {
    for (const listener of this.#listeners) listener();
  }
}
