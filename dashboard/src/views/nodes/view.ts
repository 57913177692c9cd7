import type { View } from "../view.ts";

export default {
  routes: [{ path: "/nodes", load: () => import("./nodes-page.tsx") }],
  nav: { group: "Capacity", order: 70, label: "Nodes", icon: "workers", path: "/nodes", key: "n" },
  needs: "administer",
} satisfies View;
