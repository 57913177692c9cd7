/**
 * Loads a package that is installed in this folder by the program itself. Where it is not installed nothing of it can
 * be known, its types neither: whoever loads it says what of it is used.
 */
export async function load<Package>(name: string): Promise<Package> {
  return (await import(name)) as Package;
}
