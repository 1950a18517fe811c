// SPDX-License-Identifier: Apache-2.0
import type { IconName } from "./icons.gen";
import sprite from "./icons.svg";

interface Props {
  readonly name: IconName;
  /** Edge in CSS pixels. */
  readonly size?: 16 | 20 | 24;
  readonly className?: string | undefined;
}

/** A drawing beside words. It never speaks: the control around it carries the name. */
export function Icon({ name, size = 20, className }: Props) {
  return (
    <svg width={size} height={size} className={className} aria-hidden="true" focusable="false">
      <use href={`${sprite}#${name}`} />
    </svg>
  );
}
