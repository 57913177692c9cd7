import type { View } from "../view.ts";

export default {
  routes: [{ path: "/agents", load: () => import("./agents-page.tsx") }],
  nav: { group: "Capacity", order: 60, label: "Agents", icon: "agents", path: "/agents", key: "a" },
  needs: "read",
  feature: "agents",
} satisfies View;
