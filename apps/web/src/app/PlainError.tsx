// SPDX-License-Identifier: Apache-2.0
import { Component, type ReactNode } from "react";
import { Button } from "../ui/Button";
import { Empty } from "../ui/Notice";
import styles from "./Shell.module.css";

/** A page that says one thing. */
export function PlainError({ title, children, action }: { title: string; children: ReactNode; action?: ReactNode }) {
  return (
    <main className={styles.plain}>
      <Empty title={title} action={action}>
        {children}
      </Empty>
    </main>
  );
}

interface State {
  readonly failed: boolean;
}

/** Keeps the page alive when a part of it breaks: the part alone is replaced. */
export class Part extends Component<{ children: ReactNode; name: string }, State> {
  override state: State = { failed: false };

  static getDerivedStateFromError(): State {
    return { failed: true };
  }

  override render(): ReactNode {
    if (!this.state.failed) return this.props.children;
    return (
      <Empty
        title="This part broke"
        action={<Button onClick={() => this.setState({ failed: false })}>Reload this part</Button>}
      >
        {this.props.name} could not be shown. Nothing you wrote is lost.
      </Empty>
    );
  }
}
