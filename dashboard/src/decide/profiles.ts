/** Which profile is in force, and how the list describes each. Pure. */
import type { ProfileEntry } from '../types.ts';

type Judged = Pick<ProfileEntry, 'name' | 'active' | 'problems' | 'slots'>;

/** Names of the slots that a switch would change. */
export function differentSlots({ slots }: Pick<Judged, 'slots'>): readonly string[] {
  return slots.filter(({ result }) => result !== 'unchanged').map(({ name }) => name);
}

/** The profile to show: the one that is in force, else the one that differs in the fewest slots. Undefined without profiles. */
export function nearestProfile<Profile extends Judged>(profiles: readonly Profile[]): Profile | undefined {
  const active = profiles.find((profile) => profile.active);
  const usable = profiles.filter(({ problems }) => problems.length === 0);
  const [nearest] = usable.toSorted((left, right) => differentSlots(left).length - differentSlots(right).length);
  return active ?? nearest ?? profiles[0];
}
