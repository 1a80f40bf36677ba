/** The calls of the routes that change several slots at once. */
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
