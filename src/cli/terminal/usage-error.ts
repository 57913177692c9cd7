/** Something on the command line that cannot be: a sentence for whoever wrote it. */
export class UsageError extends Error {}
