import type { UserConfig } from "vite";

/** Where `npm start` serves the API that the development server hands requests on to. */
const SERVER = "http://127.0.0.1:7682";

export default {
  root: import.meta.dirname,
  // Where `npm run dashboard` has the app, as the server does. A build has a base of its own.
  base: "/ui/",
  oxc: { jsx: { runtime: "automatic" } },
  build: {
    target: "es2024",
    // The manifest of the build lists what is served; maps would be served, too.
    sourcemap: false,
    modulePreload: { polyfill: false },
    // Nothing is written into the page or the styles: the content security policy allows no `data:` but images.
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    rolldownOptions: {
      output: {
        codeSplitting: {
          // One file for what all pages share and one for all views: many small files that repeat each other compress
          // worse by an eighth, and with one file the next view is there at once. Nothing of it is needed to sign in.
          includeDependenciesRecursively: false,
          groups: [
            {
              name: "pages",
              test: /src\/(?:pages|(?:frame|live|parts|keys)\/(?!icon|loadable|theme))|views\/(?:registry|\w+\/view\.ts)|node_modules\/(?!react|scheduler)/,
            },
            // Parts of the client that views alone use belong to them, too: in a file of their own, rolldown 1.2 exports
            // names there that do not exist.
            { name: "views", test: /src\/views\/|src\/model\/input\/input-of-task/ },
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
