import { accessSync, constants, mkdtempSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Where Linux keeps files in memory. */
const PLACE = "/dev/shm";

/** Far more than the tests fill at a time. Containers often have a place of 64 MB, which they would. */
const ROOM_MIN_BYTES = 4 * 1024 ** 3;

/**
 * A folder whose files are in memory, where the machine has one with room. The tests make and remove files by the
 * hundred thousand, most of them those of databases, and on a disk that took more CPU time than what they test.
 */
export function folderInMemory(): string | undefined {
  try {
    const { bavail, bsize } = statfsSync(PLACE);
    const room = Math.min(bavail * bsize, process.availableMemory());
    if (room < ROOM_MIN_BYTES) return undefined;
    tryProgramIn(PLACE);
    return PLACE;
  } catch {
    return undefined;
  }
}

/** Throws where nothing can be written, or where what is written cannot be run: tests write programs, too. */
function tryProgramIn(place: string): void {
  const folder = mkdtempSync(join(place, "rota-try-"));
  try {
    const program = join(folder, "program");
    writeFileSync(program, "", { mode: 0o700 });
    accessSync(program, constants.X_OK);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
