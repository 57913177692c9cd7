/**
 * The key of the signed-in user: in this tab alone, or on this device until they sign out. Never in a URL, never in a
 * cookie: no other page can make the browser send it.
 */
export class KeyStore {
  readonly #name: string;

  /** Servers below different paths of one host have keys of their own. */
  constructor(basePath: string) {
    this.#name = `rota.key${basePath}`;
  }

  get(): string | undefined {
    return read(sessionStorage, this.#name) ?? read(localStorage, this.#name);
  }

  set(key: string, { remember }: { readonly remember: boolean }): void {
    this.clear();
    try {
      (remember ? localStorage : sessionStorage).setItem(this.#name, key);
    } catch {
      // A browser that keeps nothing asks for the key again after a reload.
    }
  }

  clear(): void {
    for (const storage of [sessionStorage, localStorage]) {
      try {
        storage.removeItem(this.#name);
      } catch {
        // Nothing is kept, so nothing is left.
      }
    }
  }
}

function read(storage: Storage, name: string): string | undefined {
  try {
    return storage.getItem(name) ?? undefined;
  } catch {
    return undefined;
  }
}
