/** The calls of the routes that change several slots at once, and of those for plans of agents. */
import type { ChangePlans } from '../../../src/api/mcp/change-plans.ts';
import { SlotName } from '../../../src/schema/words/names.ts';

const SPEC = { spec: { model: { default: 'b' } } };

export const CHANGE_CALLS = [
  { operation: 'POST /api/plan', expect: 200, body: { slots: [{ name: 'primary', ...SPEC }] } },
  { operation: 'POST /api/plan', expect: 'slot.invalid', body: { slots: [{ name: 'primary', spec: { nothing: 1 } }] } },
  { operation: 'POST /api/apply', expect: 200, body: { slots: [{ name: 'primary', ...SPEC }], dry_run: true } },
  {
    operation: 'POST /api/apply',
    expect: 200,
    body: { slots: [{ name: 'extra', spec: { provider: 'gguf', model: { default: 'a' } } }], prune: true },
  },
  { operation: 'POST /api/apply', expect: 'slot.invalid', body: { slots: [{ name: 'primary', spec: { nothing: 1 } }] } },
  { operation: 'POST /api/apply', expect: 'slot.conflict', body: { slots: [{ name: 'primary', ...SPEC, resource_version: 'old' }] } },
  {
    operation: 'POST /api/apply',
    expect: 'slot.not_found',
    body: { slots: [{ name: 'extra', spec: { provider: 'gguf', model: { default: 'a' } }, resource_version: 'old' }] },
  },
] as const;

/** An entry of the list of changes. */
export const CHANGE = {
  at: '2026-11-27T08:00:00.000Z',
  who: 'anna',
  caller: 'user:anna',
  scope: 'admin',
  address: null,
  request_id: 'r1',
  slot: null,
  message: 'deleted the profile "old"',
};

const LIST = 'GET /api/mcp/plans';
const REVIEWS = ['approve', 'reject'].flatMap((verb) => {
  const operation = `POST /api/mcp/plans/{id}/${verb}`;
  return [
    { operation, expect: 200 },
    { operation, expect: 'plan.refused', id: '00000000' },
    { operation, expect: 'request.invalid', id: 'x' },
  ];
});

/** The last plan is what they are about, unless they name another id. */
export function planCalls(plansOf: () => ChangePlans | undefined) {
  const draft = () => {
    const slots = [{ name: SlotName.parse('primary'), result: 'updated' as const, keys: [{ key: 'priority', after: 1 }] }];
    const by = { key: 'token:1a2b3c4d', identity: 'agent', scope: 'admin' as const };
    plansOf()?.add({ edits: [], slots, versions: new Map(), text: 'Nothing to do' }, by);
  };
  const reviews = REVIEWS.map(({ operation, expect, id }: (typeof REVIEWS)[number] & { readonly id?: string }) => ({
    operation,
    expect,
    prepare: draft,
    get path(): string {
      return operation.slice('POST '.length).replace('{id}', id ?? plansOf()?.list().at(-1)?.id ?? '');
    },
  }));
  return [{ operation: LIST, expect: 200 }, { operation: LIST, expect: 200, prepare: draft }, ...reviews];
}
