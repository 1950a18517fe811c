// SPDX-License-Identifier: Apache-2.0
import type { ButtonHTMLAttributes, ReactNode, Ref } from "react";
import styles from "./Button.module.css";
import { Icon } from "./Icon";
import type { IconName } from "./icons.gen";

type Native = Omit<ButtonHTMLAttributes<HTMLButtonElement>, "className" | "children">;

interface ButtonProps extends Native {
  readonly children: ReactNode;
  /** One primary per view; danger only where something ends for good. */
  readonly tone?: "plain" | "primary" | "danger" | "quiet";
  /** The work of the button runs: it stays in place, shows that, and takes no second press. */
  readonly busy?: boolean;
  readonly icon?: IconName;
  readonly ref?: Ref<HTMLButtonElement>;
}

/** A button with words. */
export function Button({ children, tone = "plain", busy = false, icon, disabled, type, ...rest }: ButtonProps) {
  return (
    <button
      {...rest}
      type={type ?? "button"}
      className={styles.button}
      data-tone={tone}
      aria-disabled={busy || disabled === true}
      aria-busy={busy}
      disabled={disabled}
      {...(busy ? { onClick: (event: { preventDefault(): void }) => event.preventDefault() } : {})}
    >
      {busy ? <Icon name="spinner-gap" size={16} className={styles.spin} /> : null}
      {!busy && icon !== undefined ? <Icon name={icon} size={16} /> : null}
      {children}
    </button>
  );
}

interface IconButtonProps extends Native {
  readonly icon: IconName;
  /** Name for readers, shown as a tooltip too. */
  readonly label: string;
  readonly size?: 16 | 20;
  readonly tip?: "above" | "below" | "none";
  readonly ref?: Ref<HTMLButtonElement>;
}

/** A button of one icon. */
export function IconButton({ icon, label, size = 20, tip = "above", type, ...rest }: IconButtonProps) {
  return (
    <button
      {...rest}
      type={type ?? "button"}
      className={styles.icon}
      aria-label={label}
      data-tip={label}
      data-tip-side={tip}
    >
      <Icon name={icon} size={size} />
    </button>
  );
}
