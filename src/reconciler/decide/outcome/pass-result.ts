/** How a pass ended; for metrics. */
export type PassResult = 'ok' | 'unreadable' | 'unreachable' | 'refused';

export interface PassFacts {
  /** Whether the slots could be read; otherwise the pass uses what the last one read. */
  readonly readable: boolean;
  /** Whether the runtime answered. */
  readonly reachable: boolean;
  /** Whether the plan broke no rule. */
  readonly accepted: boolean;
}

/** Returns the worst of what happened in a pass. Pure. */
export function passResult({ readable, reachable, accepted }: PassFacts): PassResult {
  if (!accepted) return 'refused';
  if (!reachable) return 'unreachable';
  return readable ? 'ok' : 'unreadable';
}
