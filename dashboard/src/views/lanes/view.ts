import type { View } from "../view.ts";

export default {
  routes: [{ path: "/lanes", load: () => import("./lanes-page.tsx") }],
  nav: { group: "Capacity", order: 50, label: "Lanes", icon: "lanes", path: "/lanes", key: "l" },
  needs: "read",
  feature: "lanes",
} satisfies View;
