/** Peers and other servers elsewhere, by what the slots that use them declare. Pure. */
import type { Slot } from '../types.ts';
import { isTable } from './patch.ts';

export interface OtherMachine {
  /** Host and port, without user and path. */
  readonly address: string;
  /** Sorted by name. */
  readonly slots: readonly Slot[];
}

/** Sorted by address. Slots without a valid address are left out. */
export function otherMachines(slots: readonly Slot[]): readonly OtherMachine[] {
  const machines = Map.groupBy(slots, ({ spec }) => addressOf(spec));
  machines.delete(undefined);
  return [...machines]
    .map(([address = '', found]) => ({ address, slots: found.toSorted((one, other) => one.name.localeCompare(other.name)) }))
    .toSorted((one, other) => one.address.localeCompare(other.address));
}

function addressOf(spec: unknown): string | undefined {
  const remote = isTable(spec) ? spec['remote'] : undefined;
  const url = isTable(remote) ? remote['url'] : undefined;
  return typeof url === 'string' ? URL.parse(url)?.host : undefined;
}
