import type { View } from "../view.ts";
import TenantsPage from "./tenants-page.tsx";

export default {
  routes: [{ path: "/tenants", page: TenantsPage }],
  nav: { group: "Server", order: 120, label: "Tenants", icon: "person", path: "/tenants" },
  needs: "administer",
  feature: "tenants",
} satisfies View;
