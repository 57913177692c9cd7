/** The value of a parsed text, or all of its faults. */
export type ParsedText =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly faults: readonly TextFault[] };

export interface TextFault {
  readonly message: string;
  /** Both count from 1, and are left out if the fault has no position. */
  readonly line?: number;
  readonly column?: number;
}
