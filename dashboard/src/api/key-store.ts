/**
 * The key of the signed-in user: in this tab only, or on this device until they sign out. It is never in a URL or a cookie, so no
 * other page can make the browser send it.
 */
export class KeyStore {
  readonly #name: string;

  /** Servers below different paths of one host have separate keys. */
  constructor(basePath: string) {
    this.#name = `rota.key${basePath}`;
  }

  get(): string | undefined {
    return read("sessionStorage", this.#name) ?? read("localStorage", this.#name);
  }

  set(key: string, { remember }: { readonly remember: boolean }): void {
    this.clear();
    try {
      (remember ? localStorage : sessionStorage).setItem(this.#name, key);
    } catch {
      // Storage is disabled in this browser: it asks for the key again after a reload.
    }
  }

  clear(): void {
    for (const storage of ["sessionStorage", "localStorage"] as const) {
      try {
        window[storage].removeItem(this.#name);
      } catch {
        // Storage is disabled: there is nothing to remove.
      }
    }
  }
}

/** Where storage is disabled, even to name it throws. */
function read(storage: "sessionStorage" | "localStorage", name: string): string | undefined {
  try {
    return window[storage].getItem(name) ?? undefined;
  } catch {
    return undefined;
  }
}
