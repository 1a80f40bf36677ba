/** Runs few checks of tokens at a time, and lets a limited number wait. */

export interface CheckLane {
  /** Whether one more check would have to be refused. */
  isFull(): boolean;
  /** Runs the work as soon as it has its turn. */
  run<T>(work: () => Promise<T>): Promise<T>;
}

export interface LaneLimits {
  readonly running: number;
  readonly waiting: number;
}

export function createCheckLane(limits: LaneLimits): CheckLane {
  const waiting: (() => void)[] = [];
  let running = 0;

  async function takeTurn(): Promise<void> {
    if (running < limits.running) running += 1;
    else await new Promise<void>((resolve) => waiting.push(resolve));
  }

  function endTurn(): void {
    const next = waiting.shift();
    if (next === undefined) running -= 1;
    else next();
  }

  return {
    isFull: () => waiting.length >= limits.waiting,
    async run(work) {
      await takeTurn();
      try {
        return await work();
      } finally {
        endTurn();
      }
    },
  };
}
