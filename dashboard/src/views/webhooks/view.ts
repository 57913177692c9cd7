import type { View } from "../view.ts";
import WebhooksPage from "./webhooks-page.tsx";

export default {
  routes: [{ path: "/webhooks", page: WebhooksPage }],
  nav: { group: "Records", order: 90, label: "Webhooks", icon: "webhooks", path: "/webhooks", key: "w" },
  needs: "read",
  feature: "webhooks",
} satisfies View;
