/** Runs the health check of the Argo CD example, as Argo CD would, on the statuses that slots have. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { LuaFactory } from 'wasmoon';
import { parse } from 'yaml';
import { isTable } from '../../src/schema/words/key-case.ts';

const EXAMPLE = join(import.meta.dirname, '../../manifests/gitops/argocd/health-of-slots.yaml');

async function healthOf(slot: unknown): Promise<unknown> {
  const settings: unknown = parse(await readFile(EXAMPLE, 'utf8'));
  const data = isTable(settings) && isTable(settings['data']) ? settings['data'] : {};
  const check = String(data['resource.customizations.health.inference.svc.dev_SlotSpec']);
  const lua = await new LuaFactory().createEngine();
  try {
    return await lua.doString(`obj = ${toLua(slot)}\n${check}`);
  } finally {
    lua.global.close();
  }
}

/** Argo CD passes the resource as a table of Lua. */
function toLua(value: unknown): string {
  if (Array.isArray(value)) return `{${value.map(toLua).join(', ')}}`;
  if (isTable(value))
    return `{${Object.entries(value)
      .map(([key, each]) => `[${JSON.stringify(key)}] = ${toLua(each)}`)
      .join(', ')}}`;
  return JSON.stringify(value);
}

const slotWith = (conditions: Readonly<Record<string, string>>, { observed = 2, state = 'ready' } = {}) => ({
  metadata: { generation: 2 },
  status: {
    state,
    observedGeneration: observed,
    conditions: Object.entries(conditions).map(([type, status]) => ({ type, status, message: `${type} is ${status}` })),
  },
});

describe('the health of a slot in Argo CD', () => {
  test.each([
    ['that no controller has seen', { metadata: { generation: 1 } }, 'Progressing'],
    [
      'that no controller has seen, with the default of its definition',
      { metadata: { generation: 1 }, status: { observedGeneration: -1 } },
      'Progressing',
    ],
    ['whose edit nobody has seen', slotWith({ Ready: 'True', UpToDate: 'True', Stalled: 'False' }, { observed: 1 }), 'Progressing'],
    ['that starts', slotWith({ Ready: 'False', UpToDate: 'False', Reconciling: 'True', Stalled: 'False' }), 'Progressing'],
    ['whose old model still answers', slotWith({ Ready: 'True', UpToDate: 'False', Reconciling: 'True', Stalled: 'False' }), 'Progressing'],
    ['of which too little is known', slotWith({ Ready: 'Unknown', UpToDate: 'Unknown', Stalled: 'False' }), 'Progressing'],
    ['that an older version reported', slotWith({ Ready: 'True', Reconciling: 'False', Stalled: 'False' }), 'Progressing'],
    ['that is stalled while its old model answers', slotWith({ Ready: 'True', UpToDate: 'False', Stalled: 'True' }), 'Degraded'],
    ['that is up to date', slotWith({ Ready: 'True', UpToDate: 'True', Reconciling: 'False', Stalled: 'False' }), 'Healthy'],
    ['at rest', slotWith({ UpToDate: 'True', Reconciling: 'False', Stalled: 'False' }, { state: 'offline' }), 'Healthy'],
    ['at rest whose model cannot be loaded', slotWith({ UpToDate: 'False', Reconciling: 'False', Stalled: 'False' }), 'Progressing'],
  ])('%s', async (_name, slot, status) => {
    expect(await healthOf(slot)).toMatchObject({ status, message: expect.stringMatching(/\w/) });
  });
});
