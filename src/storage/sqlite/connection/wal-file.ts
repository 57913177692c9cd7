import { closeSync, openSync, readSync } from "node:fs";

/** Of SQLite's file formats: https://sqlite.org/walformat.html */
const HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;
const MAGIC = 0x377f0682;
const INDEX_HEADER_BYTES = 48;

type Checksum = readonly [number, number];

/** The end of the log according to SQLite's index of it, and the checksum of the log up to there. */
export interface WalEnd {
  readonly frames: number;
  readonly pageBytes: number;
  readonly checksum: Checksum;
}

/** Reads where the log ends from the file with its index, which is in the byte order of this machine. */
export function readWalEnd(indexPath: string): WalEnd {
  const file = openSync(indexPath, "r");
  try {
    const header = new Uint8Array(INDEX_HEADER_BYTES);
    readSync(file, header, 0, INDEX_HEADER_BYTES, 0);
    const numbers = new Uint32Array(header.buffer);
    const [, , , , frames = 0, , first = 0, second = 0] = numbers;
    const pageBytes = new Uint16Array(header.buffer)[7] ?? 0;
    // The largest page does not fit into two bytes and is written as 1.
    return { frames, pageBytes: pageBytes === 1 ? 65_536 : pageBytes, checksum: [first, second] };
  } finally {
    closeSync(file);
  }
}

/** How many bytes of the log file hold committed frames. */
export function walBytes({ frames, pageBytes }: WalEnd): number {
  return frames === 0 ? 0 : HEADER_BYTES + frames * (FRAME_HEADER_BYTES + pageBytes);
}

/** Whether these bytes are the log up to its end, every frame as SQLite wrote it. */
export function isWholeWal(bytes: Buffer, end: WalEnd): boolean {
  if (end.frames === 0) return true;
  if (bytes.length < walBytes(end)) return false;
  const magic = bytes.readUInt32BE(0);
  if (magic !== MAGIC && magic !== MAGIC + 1) return false;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const littleEndian = magic === MAGIC;
  let sum = addTo([0, 0], view, { from: 0, to: HEADER_BYTES - 8, littleEndian });
  if (!isAt(bytes, HEADER_BYTES - 8, sum)) return false;
  for (let frame = 0; frame < end.frames; frame += 1) {
    const from = HEADER_BYTES + frame * (FRAME_HEADER_BYTES + end.pageBytes);
    const page = from + FRAME_HEADER_BYTES;
    sum = addTo(sum, view, { from, to: from + 8, littleEndian });
    sum = addTo(sum, view, { from: page, to: page + end.pageBytes, littleEndian });
    if (!isAt(bytes, from + 16, sum)) return false;
  }
  return sum[0] === end.checksum[0] && sum[1] === end.checksum[1];
}

function addTo(
  [first, second]: Checksum,
  view: DataView,
  { from, to, littleEndian }: { from: number; to: number; littleEndian: boolean },
): Checksum {
  let [s0, s1] = [first, second];
  for (let at = from; at < to; at += 8) {
    s0 = (s0 + view.getUint32(at, littleEndian) + s1) >>> 0;
    s1 = (s1 + view.getUint32(at + 4, littleEndian) + s0) >>> 0;
  }
  return [s0, s1];
}

function isAt(bytes: Buffer, at: number, [first, second]: Checksum): boolean {
  return bytes.readUInt32BE(at) === first && bytes.readUInt32BE(at + 4) === second;
}
