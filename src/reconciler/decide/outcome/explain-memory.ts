/** How memory was shared out, as text: what a slot needs, of which budget, and which of the slots that want it gets it, and why. Pure. */
import { formatSize } from '../../../schema/words/quantities.ts';
import { HOST, type PoolId } from '../facts/memory-pools.ts';
import type { MemoryGroup } from '../rules/memory-turns.ts';
import type { MemoryCandidate, MemoryVerdict } from '../rules/share-memory.ts';

/** One line for the slot, and one for each slot that shares the memory, where it is short. */
export function memoryLines(memory: MemoryVerdict | undefined): readonly string[] {
  if (memory?.budgetBytes === undefined) return [];
  const { pool, othersBytes, candidates } = memory;
  const verdict = memory.admitted ? 'admitted' : memory.mayWait ? 'not admitted yet' : 'not admitted';
  const ahead = memory.ahead.length === 0 ? '' : ` to ${memory.ahead.map((name) => `"${name}"`).join(', ')}`;
  const kept = memory.keptFor === undefined ? '' : `; the rest is kept for "${memory.keptFor}", whose turn comes first`;
  const others = othersBytes === 0 ? '' : `; other programs use ${formatSize(othersBytes)} of it`;
  const promised = `${formatSize(memory.aheadBytes)} of ${formatSize(memory.budgetBytes)}${nameOf(pool)} are promised${ahead}`;
  return [
    `  memory: ${verdict}, needs ${placementText(memory)}${measuredText(memory)}; ${promised}${kept}${others}`,
    ...(candidates.length <= 1 ? [] : ['  memory is short; the slots that share it:']),
    ...(candidates.length <= 1 ? [] : candidates).map((candidate) => `    ${candidateText(candidate)}`),
  ];
}

function measuredText({ estimatedBytes }: MemoryVerdict): string {
  return estimatedBytes === undefined ? '' : ` as measured, more than the estimate of ${formatSize(estimatedBytes)}`;
}

function nameOf(pool: PoolId): string {
  return pool === HOST ? '' : ` on "${pool}"`;
}

/** By where it is, if that is more than one memory. */
function placementText({ placement, bytes }: MemoryVerdict): string {
  const parts = Object.entries(placement).filter(([, each]) => each > 0);
  if (parts.length === 0 || (parts.length === 1 && parts[0]?.[0] === HOST)) return formatSize(bytes);
  return parts.map(([id, each]) => `${formatSize(each)} ${id === HOST ? 'of the host' : `of "${id}"`}`).join(' and ');
}

function candidateText({ slot, bytes, priority, group, incumbent, admitted }: MemoryCandidate): string {
  const verb = incumbent ? (admitted ? 'keeps' : 'gives up') : admitted ? 'gets' : 'waits for';
  const rank = priority === 0 ? '' : ` with priority ${priority}`;
  return `"${slot}"${rank} ${verb} ${formatSize(bytes)}: ${WHY[group][admitted ? 'yes' : 'no']}`;
}

const WHY: Readonly<Record<MemoryGroup, { readonly yes: string; readonly no: string }>> = {
  always: { yes: 'it is always loaded', no: 'the slots before it leave too little' },
  loading: { yes: 'it is being loaded', no: 'a slot of higher priority needs it, which is always loaded' },
  turn: { yes: 'its turn has not ended', no: 'a slot of higher priority needs it, which is always loaded' },
  overdue: { yes: 'its requests have waited for more than 30 s', no: 'its requests wait until a turn ends' },
  waiting: { yes: 'its requests wait, and it is its turn', no: 'its requests wait until it is its turn' },
  served: { yes: 'it has requests, and nobody waits for its memory', no: 'its turn has ended; it finishes its requests first' },
  idle: { yes: 'it is idle, and others give way before it', no: 'it is idle, and other slots are asked for' },
  unloaded: { yes: 'there is room for it', no: 'nobody asks for it' },
};
