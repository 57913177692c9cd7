/**
 * Loads a package that is installed in this folder by the program itself. Where it is not installed nothing of it can
 * be known, its types neither: the file that loads it declares what it uses.
 */
export async function load<Package>(name: string): Promise<Package> {
  return (await import(name)) as Package;
}
