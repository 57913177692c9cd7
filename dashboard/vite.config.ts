import { join } from "node:path";
import type { UserConfig } from "vite";
import { leaveOut } from "./leave-out.ts";

/** A file that JSX is not compiled in: it would import itself. */
const ELEMENTS = join(import.meta.dirname, "src", "create-element.js").replaceAll("\\", "/");
/** Where `npm start` serves the API that the development server hands requests on to. */
const SERVER = "http://127.0.0.1:7682";

export default {
  root: import.meta.dirname,
  // Where `npm run dashboard` has the app, as the server does. A build has a base of its own.
  base: "/ui/",
  plugins: [leaveOut()],
  // Two thousand calls `a("p", null, "text")` compress to 2 KB less than as many `(0, b.jsx)("p", { children: "text" })`.
  oxc: {
    jsx: { runtime: "classic", pragma: "h", pragmaFrag: "F" },
    jsxInject: `import { F, h } from "${ELEMENTS}"`,
  },
  build: {
    target: "es2024",
    // These know `light-dark()`: what would stand in for it elsewhere is longer than all tokens.
    cssTarget: ["chrome123", "firefox120", "safari17.5"],
    // The manifest of the build lists what is served; maps would be served, too.
    sourcemap: false,
    // All files are named in the page or in one import: nothing needs to be fetched ahead.
    modulePreload: false,
    cssCodeSplit: false,
    // Nothing is written into the page or the styles: the content security policy allows no `data:` but images.
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    rolldownOptions: {
      output: {
        codeSplitting: {
          // One file for all that a signed-in user sees: apart, the frame and the views compress worse by a thirtieth and
          // load one after the other, and many small files worse by an eighth. Nothing of it is needed to sign in.
          includeDependenciesRecursively: false,
          groups: [
            {
              name: "pages",
              // Parts of the client that views alone use belong to it, too: in a file of their own, rolldown 1.2 exports
              // names there that do not exist.
              test: /src\/(?:pages|views\/|(?:frame|live|parts|keys|queries|forms)\/(?!button|icon|loadable|theme))|src\/model\/input\/input-of-task|node_modules\/(?!react|scheduler)|jsx-runtime/,
            },
          ],
        },
      },
    },
  },
  server: {
    port: 7683,
    // All that is not a file of the app belongs to the server.
    proxy: {
      "^/(v1|tasks|scheduler|health|ready|metrics|openapi.json)(/|\\?|$)": {
        target: SERVER,
        changeOrigin: true,
      },
    },
  },
} satisfies UserConfig;
