import type { View } from "../view.ts";

export default {
  routes: [{ path: "/keys", load: () => import("./keys-page.tsx") }],
  nav: { group: "Server", order: 110, label: "Keys", icon: "key", path: "/keys", key: "k" },
  needs: "manage",
  feature: "keys",
} satisfies View;
