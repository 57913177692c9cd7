/** What the text of a file says, or everything that keeps it from saying anything. */
export type ParsedText =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly faults: readonly TextFault[] };

export interface TextFault {
  readonly message: string;
  /** Both count from 1, and are left out when the fault has no place. */
  readonly line?: number;
  readonly column?: number;
}
