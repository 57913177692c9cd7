/** What names a storage, as a sentence goes on after "must be". */
export const STORAGE_FORMS = '"sqlite:rota.db", "sqlite::memory:" or "postgres://…"';

export type StorageUrl =
  /** `path` is a file or `:memory:`. */
  | { readonly driver: "sqlite"; readonly path: string }
  | { readonly driver: "postgres"; readonly url: string };

/** What a URL says about where tasks are kept; null when it names no storage. */
export function parseStorageUrl(url: string): StorageUrl | null {
  const path = /^sqlite:(.+)$/s.exec(url)?.[1];
  if (path !== undefined) return { driver: "sqlite", path };
  // The driver would refuse what is no URL as well, with an error that shows it, the password included.
  return /^postgres(?:ql)?:\/\//.test(url) && URL.canParse(url) ? { driver: "postgres", url } : null;
}

export function isStorageUrl(url: string): boolean {
  return parseStorageUrl(url) !== null;
}

/** A storage as people and logs may see it: without the user name, the password and whatever else follows the name. */
export function shownStorageUrl(url: string): string {
  const parsed = URL.parse(url);
  if (parseStorageUrl(url)?.driver === "sqlite") return url;
  return parsed === null ? "postgres" : `${parsed.protocol}//${parsed.host}${parsed.pathname}`;
}
