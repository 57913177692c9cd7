/** A mistake on the command line. The message is a sentence for the user. */
export class UsageError extends Error {}
