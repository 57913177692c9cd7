import type { View } from "../view.ts";
import AuditPage from "./audit-page.tsx";

export default {
  routes: [{ path: "/audit", page: AuditPage }],
  nav: { group: "Records", order: 100, label: "Audit log", icon: "audit", path: "/audit" },
  needs: "administer",
  feature: "audit",
} satisfies View;
