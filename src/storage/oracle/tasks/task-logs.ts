import { TASK_LOG_MAX } from "../../../model/task-log.ts";
import { type LogPage, type LogPiece, piecesToPage, type ReadLogParams } from "../../storage.ts";
import type { OracleState } from "../state.ts";

export function appendLogs(state: OracleState, { pieces }: { pieces: readonly LogPiece[] }): void {
  for (const piece of pieces) {
    const isSame = (other: LogPiece) =>
      other.taskSeq === piece.taskSeq && other.attempt === piece.attempt && other.lastN === piece.lastN;
    const isKnown = state.tasks.some(({ seq }) => seq === piece.taskSeq);
    if (isKnown && !state.logs.some(isSame)) state.logs.push(piece);
    trim(state, piece);
  }
}

function trim(state: OracleState, { taskSeq, attempt }: LogPiece): void {
  let [lines, bytes] = [0, 0];
  for (const piece of piecesOf(state, taskSeq, attempt).reverse()) {
    lines += piece.lines.length;
    bytes += piece.bytes;
    if (lines <= TASK_LOG_MAX.lines && bytes <= TASK_LOG_MAX.bytes) continue;
    state.logs = state.logs.filter((other) => other !== piece);
  }
  const attempts = state.logs.filter((piece) => piece.taskSeq === taskSeq).map((piece) => piece.attempt);
  const last = Math.max(0, ...attempts) - TASK_LOG_MAX.attempts;
  state.logs = state.logs.filter((piece) => piece.taskSeq !== taskSeq || piece.attempt > last);
}

export function readLogs(
  state: OracleState,
  { tenant, agent, taskId, attempt: asked, after, limit }: ReadLogParams,
): LogPage | null {
  const task = state.tasks.find((candidate) => candidate.tenant === tenant && candidate.id === taskId);
  if (task === undefined || (agent !== undefined && task.agent !== agent)) return null;
  const attempts = state.logs.filter(({ taskSeq }) => taskSeq === task.seq).map((piece) => piece.attempt);
  const attempt = asked ?? (attempts.length === 0 ? null : Math.max(...attempts));
  const pieces = piecesOf(state, task.seq, attempt);
  const kept = pieces.reduce((sum, { lines }) => sum + lines.length, 0);
  return piecesToPage(
    attempt,
    pieces.map(({ lastN, lines }) => ({
      lastN,
      lines: lines.map(({ at, level, text }) => [at, level, text]),
    })),
    { after, limit, dropped: (pieces.at(-1)?.lastN ?? 0) - kept },
  );
}

function piecesOf(state: OracleState, taskSeq: number, attempt: number | null): LogPiece[] {
  return state.logs
    .filter((piece) => piece.taskSeq === taskSeq && piece.attempt === attempt)
    .sort((a, b) => a.lastN - b.lastN);
}
