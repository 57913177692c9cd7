import type { View } from "../view.ts";

export default {
  routes: [{ path: "/audit", load: () => import("./audit-page.tsx") }],
  nav: { group: "Records", order: 100, label: "Audit log", icon: "audit", path: "/audit" },
  needs: "administer",
  feature: "audit",
} satisfies View;
