import type { View } from "../view.ts";
import TenantsPage from "./tenants-page.tsx";

export default {
  routes: [{ path: "/tenants", page: TenantsPage }],
  nav: {
    group: "Server",
    order: 120,
    label: "Tenants",
    icon: "person",
    path: "/tenants",
    creates: { label: "New tenant", needs: "administer" },
  },
  needs: "administer",
  feature: "tenants",
} satisfies View;
