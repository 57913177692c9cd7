import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";

/** Written by the build. Only the files that it lists are served. */
export const MANIFEST = "manifest.json";
export const INDEX = "index.html";

/** Types of the files that a build makes. Another extension is a fault of the build. */
const TYPES: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
};

export type Encoding = "br" | "gzip";

/** One file of the dashboard, with its precompressed forms. */
export interface DashboardFile {
  readonly type: string;
  /** Its name contains a hash of its contents: it never changes. */
  readonly immutable: boolean;
  readonly etag: string;
  readonly bytes: Buffer;
  readonly encoded: Readonly<Partial<Record<Encoding, Buffer>>>;
}

/** Every file by its path below `/ui/`. A path that is not in here does not exist. */
export type DashboardFiles = ReadonlyMap<string, DashboardFile>;

export interface Manifest {
  readonly files: readonly { readonly path: string; readonly encodings: readonly Encoding[] }[];
}

const SUFFIX: Readonly<Record<Encoding, string>> = { br: "br", gzip: "gz" };

/** Reads a build into memory: about half a megabyte. Throws when it is incomplete. */
export async function readDashboardFiles(folder: string, basePath: string): Promise<DashboardFiles> {
  const manifest = JSON.parse(await readFile(join(folder, MANIFEST), "utf8")) as Manifest;
  const files = await Promise.all(
    manifest.files.map(async ({ path, encodings }) => {
      const bytes = await readFile(join(folder, path));
      if (path === INDEX) return [path, file(path, withBasePath(bytes, basePath), {})] as const;
      const encoded = await Promise.all(
        encodings.map(
          async (encoding) =>
            [encoding, await readFile(join(folder, `${path}.${SUFFIX[encoding]}`))] as const,
        ),
      );
      return [path, file(path, bytes, Object.fromEntries(encoded))] as const;
    }),
  );
  const table = new Map(files);
  if (!table.has(INDEX)) throw new Error(`${folder} has no ${INDEX}`);
  return table;
}

function file(path: string, bytes: Buffer, encoded: DashboardFile["encoded"]): DashboardFile {
  const type = TYPES[path.slice(path.lastIndexOf(".") + 1)];
  if (type === undefined) throw new Error(`the dashboard has a file of an unknown type: ${path}`);
  const etag = `"${createHash("sha256").update(bytes).digest("base64url").slice(0, 22)}"`;
  return { type, immutable: path.startsWith("assets/"), etag, bytes, encoded };
}

/** The page is the same at every depth of `/ui/`, so that its links must be absolute; the app reads the base from a `<meta>`. */
function withBasePath(page: Buffer, basePath: string): Buffer {
  const text = page
    .toString("utf8")
    .replaceAll(/(src|href)="\.\//g, `$1="${basePath}/ui/`)
    .replace('name="rota-base" content=""', `name="rota-base" content="${basePath}"`);
  return Buffer.from(text);
}
