/** Logs what is wrong with plans: once, and not in each pass that finds the same. */
import type { Log } from '../platform/log.ts';
import type { Objection } from './decide/facts/inspection.ts';

export function createObjectionLog(log: Pick<Log, 'error'>): (objections: readonly Objection[]) => void {
  let last = '';
  return (objections) => {
    const text = objections.map(({ message }) => message).join('; ');
    if (text === last) return;
    last = text;
    if (text !== '')
      log.error({ objections }, 'Report this as a bug: a plan broke the rules for plans, and that part of it is not carried out');
  };
}
