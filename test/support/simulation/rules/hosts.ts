/** On a machine, no error is taken for absence: `machine/` notes what a controller did or believed that it never may. */
import type { Rule } from './rule.ts';

export const judgeHosts: Rule = ({ world, wrong }) => ({
  look() {
    const broken = world.host?.machine.broken();
    if (broken !== undefined) wrong(broken);
  },
});
