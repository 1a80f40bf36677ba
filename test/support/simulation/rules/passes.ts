/** Passes: soon after everything that asks for one, regularly without, never while one is running, and with a pause between two. */
import type { Rule } from './rule.ts';

const PORTS = ['source', 'runtime', 'models', 'traffic'] as const;
const RESYNC_MS = 15_000;
/** A pass may be delayed by the pause after the last one. */
const LATE_MS = 1000;
/** Each part of a pass has to give up waiting after 15 s: reading what is desired, observing, and, when it begins to act, reading the records. */
const LONGEST_PASS_MS = 46_000;
const SHORTEST_SPACING_MS = 5;
const LONGEST_SPACING_MS = 250;

export const judgePasses: Rule = ({ world, life, wrong }) => {
  const { clock } = world;
  let beganAt: number | undefined;
  let running = false;
  let hasPlanned = false;
  let dueAt = clock.now();
  let notBefore = 0;
  let endedAt = 0;
  const due = (at: number): void => void (dueAt = Math.min(dueAt, at));
  function end(now: number, wakeAt = Number.POSITIVE_INFINITY): void {
    running = false;
    endedAt = now;
    if (beganAt !== undefined) notBefore = beganAt + Math.min(Math.max(SHORTEST_SPACING_MS, 2 * (now - beganAt)), LONGEST_SPACING_MS);
    due(Math.min(now + RESYNC_MS, wakeAt));
  }
  return {
    called({ name }) {
      if (name !== 'read') return;
      const now = clock.now();
      if (now < notBefore) wrong(`A pass began ${notBefore - now} ms too early`);
      beganAt = now;
      running = true;
      dueAt = Number.POSITIVE_INFINITY;
    },
    answered(call) {
      // As long as nothing was read, a pass ends here.
      if (call.name === 'read' && call.failure !== undefined && !hasPlanned) end(clock.now(), undefined);
      if (call.name !== 'read' && call.name !== 'observe') due(clock.now());
    },
    woken: (withinMs) => due(clock.now() + withinMs),
    planned({ plan, now }) {
      hasPlanned = true;
      end(now, plan.wakeAt);
    },
    look() {
      for (const port of PORTS)
        if (hasPlanned && !life.journal.listenedTo.has(port)) wrong(`The controller does not listen to its ${port}`);
      const now = clock.now();
      if (running) {
        if (beganAt !== undefined && now - beganAt > LONGEST_PASS_MS) wrong(`A pass has been running for ${now - beganAt} ms`);
      } else if (now - Math.max(dueAt, notBefore, endedAt) > LATE_MS) wrong(`A pass is ${now - dueAt} ms late`);
    },
  };
};
