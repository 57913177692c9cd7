import { createCipheriv, createDecipheriv, createHash, randomBytes } from "node:crypto";
import { invalidField } from "../../model/input/field-checks.ts";

/** The variable that holds the keys. */
export const SECRET_KEY_VARIABLE = "ROTA_SECRET_KEY";

const KEY_BYTES = 32;
const IV_BYTES = 12;
const TAG_BYTES = 16;
const CIPHER = "aes-256-gcm";
const PREFIX = "sealed:1:";

interface Key {
  /** Identifies the key without revealing it. */
  readonly id: string;
  readonly bytes: Buffer;
}

/**
 * Encrypts secrets before they are stored, with the keys of `ROTA_SECRET_KEY`: 32 bytes in base64 each, separated by commas. The
 * first key encrypts, all of them decrypt, so that a new key can be put before the old one. Without a key secrets are stored as
 * they are.
 *
 * @example
 * const box = new SecretBox(environment["ROTA_SECRET_KEY"]);
 * box.open(box.seal("Bearer abc", "acme/writer"), "acme/writer"); // "Bearer abc"
 */
export class SecretBox {
  readonly #keys: readonly Key[];

  /** Throws `invalid_field` for keys of another form. */
  constructor(keys: string | undefined) {
    this.#keys = (keys ?? "") === "" ? [] : (keys ?? "").split(",").map(readKey);
  }

  /** The ids of its keys. It can decrypt secrets that were encrypted with one of them. */
  get keyIds(): string[] {
    return this.#keys.map(({ id }) => id);
  }

  /** The id of the key that encrypts; undefined: nothing is encrypted. */
  get sealsWith(): string | undefined {
    return this.#keys[0]?.id;
  }

  /** `about` names the owner of the secret. It can be decrypted only with the same `about`. */
  seal(secret: string, about: string): string {
    const [key] = this.#keys;
    if (key === undefined) return secret;
    const iv = randomBytes(IV_BYTES);
    const cipher = createCipheriv(CIPHER, key.bytes, iv).setAAD(Buffer.from(about));
    const bytes = Buffer.concat([iv, cipher.update(secret, "utf8"), cipher.final(), cipher.getAuthTag()]);
    return `${PREFIX}${key.id}:${bytes.toString("base64url")}`;
  }

  /** Returns the secret. One that was stored without a key is returned as it is. Null: the key is missing, or `about` differs. */
  open(stored: string, about: string): string | null {
    if (!isSealed(stored)) return stored;
    const [id, text = ""] = stored.slice(PREFIX.length).split(":");
    const key = this.#keys.find((each) => each.id === id);
    if (key === undefined) return null;
    const bytes = Buffer.from(text, "base64url");
    try {
      const decipher = createDecipheriv(CIPHER, key.bytes, bytes.subarray(0, IV_BYTES))
        .setAAD(Buffer.from(about))
        .setAuthTag(bytes.subarray(-TAG_BYTES));
      const opened = decipher.update(bytes.subarray(IV_BYTES, -TAG_BYTES));
      return Buffer.concat([opened, decipher.final()]).toString();
    } catch {
      return null;
    }
  }
}

function isSealed(stored: string): boolean {
  return stored.startsWith(PREFIX);
}

function readKey(text: string): Key {
  const bytes = Buffer.from(text.trim(), "base64");
  if (bytes.length !== KEY_BYTES || !/^[\w+/-]+={0,2}$/.test(text.trim()))
    throw invalidField(
      SECRET_KEY_VARIABLE,
      `${SECRET_KEY_VARIABLE} must be 32 random bytes in base64, as \`openssl rand -base64 32\` prints them; several are separated by commas`,
    );
  return { id: createHash("sha256").update("rota key id").update(bytes).digest("hex").slice(0, 8), bytes };
}
