/** Which end of a workload it was. Its time is of another clock, and may be as coarse as a second: only whether two are the same end can be told. Pure. */
import type { WorkloadExit } from '../../ports.ts';

export function exitId({ container, at }: WorkloadExit): string {
  return container ?? String(at);
}
