export const MIB = 1_048_576;
