import type { View } from "../view.ts";
import NodesPage from "./nodes-page.tsx";

export default {
  routes: [{ path: "/nodes", page: NodesPage }],
  nav: { group: "Capacity", order: 70, label: "Nodes", icon: "workers", path: "/nodes", key: "n" },
  needs: "administer",
} satisfies View;
