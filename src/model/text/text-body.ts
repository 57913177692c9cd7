/** The text of a request: whole, or, if it is large, as texts that follow each other. */
export type TextBody = string | readonly string[];
