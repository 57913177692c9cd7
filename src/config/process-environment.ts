/** The variables of this process, for what the configuration says of them: a key that one holds, programs that inherit all. */
export const processEnvironment: Readonly<Record<string, string | undefined>> = process.env;
