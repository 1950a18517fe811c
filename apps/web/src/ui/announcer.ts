// SPDX-License-Identifier: Apache-2.0

/** Speaks to screen readers, sparingly. */
export interface Announcer {
  /** Says something when there is a pause; more than three waiting things become their number. */
  say(text: string): void;
  /** Says something at once: sending failed, access lost. */
  alert(text: string): void;
}

const pace = 1_500;

/** Announces into two live regions of the page. */
export function pageAnnouncer(polite: HTMLElement, assertive: HTMLElement): Announcer {
  let waiting: string[] = [];
  let pausing = false;
  const flush = () => {
    pausing = waiting.length > 0;
    if (!pausing) {
      // Spoken once, it has no further use, and a message that is deleted must not stay in the page.
      polite.textContent = "";
      return;
    }
    polite.textContent = waiting.length > 3 ? `${waiting.length} new messages` : waiting.join(". ");
    waiting = [];
    setTimeout(flush, pace);
  };
  return {
    say(text) {
      waiting.push(text);
      if (!pausing) setTimeout(flush, 100);
      pausing = true;
    },
    alert(text) {
      assertive.textContent = text;
    },
  };
}
