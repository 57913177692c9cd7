import type { View } from "../view.ts";

export default {
  routes: [{ path: "/tenants", load: () => import("./tenants-page.tsx") }],
  nav: { group: "Server", order: 120, label: "Tenants", icon: "person", path: "/tenants" },
  needs: "administer",
  feature: "tenants",
} satisfies View;
