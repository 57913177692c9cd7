import type { View } from "../view.ts";

export default {
  routes: [{ path: "/webhooks", load: () => import("./webhooks-page.tsx") }],
  nav: { group: "Records", order: 90, label: "Webhooks", icon: "webhooks", path: "/webhooks", key: "w" },
  needs: "read",
  feature: "webhooks",
} satisfies View;
