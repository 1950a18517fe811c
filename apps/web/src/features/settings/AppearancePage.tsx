// SPDX-License-Identifier: Apache-2.0
import { Choice } from "../../ui/Field";
import { Page } from "../../ui/Page";
import { setTheme, type Theme, useTheme } from "../../ui/theme";

/** The look of the client in this browser. */
export function AppearancePage() {
  const theme = useTheme();
  return (
    <Page title="Appearance" lead="How the pages look in this browser. Other devices keep their own.">
      <Choice<Theme>
        legend="Theme"
        value={theme}
        onChange={setTheme}
        options={[
          { value: "system", label: "Like the system", hint: "Changes with the machine, for example at night." },
          { value: "light", label: "Light" },
          { value: "dark", label: "Dark" },
        ]}
      />
    </Page>
  );
}
