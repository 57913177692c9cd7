import type { View } from "../view.ts";

export default {
  routes: [{ path: "/settings", load: () => import("./settings-page.tsx") }],
  nav: { group: "Server", order: 130, label: "Settings", icon: "settings", path: "/settings" },
  needs: "manage",
} satisfies View;
