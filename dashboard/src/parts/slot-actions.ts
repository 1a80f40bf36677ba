/** The changes that cards offer, as what is planned and what is sent. */
import type { Change } from '../app-context.ts';
import { T } from '../texts.ts';

export function loadChange(slot: string, model?: string): Change {
  const chosen = model === undefined ? {} : { model: { default: model } };
  const title = model === undefined ? `${T.planTitle.load} "${slot}"` : `${T.planTitle.model} "${slot}" to "${model}"`;
  return { slot, verb: 'load', patch: { enabled: true, ...chosen }, body: model === undefined ? {} : { model }, title };
}

function unloadChange(slot: string): Change {
  return { slot, verb: 'unload', patch: { enabled: false }, body: {}, title: `${T.planTitle.unload} "${slot}"` };
}

/** A slot at rest is disabled by the same verb that unloads others. */
export function changeOf(slot: string, what: 'load' | 'unload' | 'disable'): Change {
  if (what === 'load') return loadChange(slot);
  return what === 'unload' ? unloadChange(slot) : { ...unloadChange(slot), title: `${T.planTitle.disable} "${slot}"` };
}

export function restartChange(slot: string): Change {
  const patch = { restarted_at: new Date().toISOString() };
  return { slot, verb: 'restart', patch, body: {}, title: `${T.planTitle.restart} "${slot}"` };
}
