/** What the board shows of a slot. Pure. */
import type { SlotStatus } from '../../../schema/status/slot-status.ts';
import type { BoardSlot } from '../../board.ts';
import type { DesiredSlot } from '../../ports.ts';
import type { Action } from '../facts/actions.ts';
import type { PublishedSlot } from '../facts/facts.ts';
import { explainSlot } from './explain.ts';

export function boardSlot(
  { slot, actions }: { readonly slot: DesiredSlot; readonly actions: readonly Action[] },
  { decision }: Pick<PublishedSlot, 'decision'>,
  status: SlotStatus,
): BoardSlot {
  const { name, spec, generation, problems } = slot;
  const lastLog = decision.lastFailure?.logTail;
  return {
    name,
    capabilities: decision.capabilities,
    ...(decision.servedModel === undefined ? {} : { model: decision.servedModel }),
    ...(decision.voices === undefined ? {} : { voices: decision.voices }),
    admission: decision.admission,
    targets: decision.targets,
    status,
    spec,
    generation,
    problems,
    ...(lastLog === undefined ? {} : { lastLog: lastLog.map(({ text }) => text) }),
    ...(decision.memory === undefined ? {} : { memory: decision.memory }),
    explain: (askedAt) => explainSlot(decision, actions, askedAt),
  };
}
