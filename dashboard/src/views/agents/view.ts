import type { View } from "../view.ts";
import AgentsPage from "./agents-page.tsx";

export default {
  routes: [{ path: "/agents", page: AgentsPage }],
  nav: {
    group: "Capacity",
    order: 60,
    label: "Agents",
    icon: "agents",
    path: "/agents",
    key: "a",
    creates: { label: "New agent", needs: "operate" },
  },
  needs: "read",
  feature: "agents",
} satisfies View;
