import type { View } from "../view.ts";

export default {
  routes: [{ path: "/events", load: () => import("./events-page.tsx") }],
  nav: { group: "Records", order: 80, label: "Events", icon: "events", path: "/events", key: "e" },
  needs: "read",
} satisfies View;
