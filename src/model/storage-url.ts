/** The forms of a storage URL, as the rest of "must be …". */
export const STORAGE_FORMS =
  '"sqlite:rota.db", "sqlite::memory:" or "postgres://user:password@host:5432/database"';

export type StorageUrl =
  /** `path` is a file or `:memory:`. */
  | { readonly driver: "sqlite"; readonly path: string }
  | { readonly driver: "postgres"; readonly url: string };

/** Parses the URL of a storage; null: it is none. */
export function parseStorageUrl(url: string): StorageUrl | null {
  const path = /^sqlite:(.+)$/s.exec(url)?.[1];
  if (path !== undefined) return { driver: "sqlite", path };
  // The driver also refuses an invalid URL, but with an error that shows it, including the password.
  return /^postgres(?:ql)?:\/\//.test(url) && URL.canParse(url) ? { driver: "postgres", url } : null;
}

export function isStorageUrl(url: string): boolean {
  return parseStorageUrl(url) !== null;
}

/** A storage URL for logs and users: without user name, password and query. */
export function shownStorageUrl(url: string): string {
  const parsed = URL.parse(url);
  if (parseStorageUrl(url)?.driver === "sqlite") return url;
  return parsed === null ? "postgres" : `${parsed.protocol}//${parsed.host}${parsed.pathname}`;
}
