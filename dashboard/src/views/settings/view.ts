import type { View } from "../view.ts";
import SettingsPage from "./settings-page.tsx";

export default {
  routes: [{ path: "/settings", page: SettingsPage }],
  nav: { group: "Server", order: 130, label: "Settings", icon: "settings", path: "/settings" },
  needs: "manage",
} satisfies View;
