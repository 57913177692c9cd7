import type { View } from "../view.ts";
import KeysPage from "./keys-page.tsx";

export default {
  routes: [{ path: "/keys", page: KeysPage }],
  nav: {
    group: "Server",
    order: 110,
    label: "Keys",
    icon: "key",
    path: "/keys",
    key: "k",
    creates: { label: "New key", needs: "manage" },
  },
  needs: "manage",
  feature: "keys",
} satisfies View;
