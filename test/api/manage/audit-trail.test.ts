import { beforeEach, describe, expect, test } from '@jest/globals';
import { createAuditTrail } from '../../../src/api/manage/audit-trail.ts';
import { ok } from '../../../src/schema/words/failure.ts';
import { ModelId, ProfileName, SlotName } from '../../../src/schema/words/names.ts';
import { openCaptures } from '../../support/open-captures.ts';
import { createInMemorySlots } from './in-memory-slots.ts';
import { createInMemoryTokens } from './in-memory-tokens.ts';

const PRIMARY = SlotName.parse('primary');
const REQUEST = { id: 'r1', caller: { key: 'caller', identity: 'anna', scope: 'admin' }, socket: { remoteAddress: '10.0.0.7' } } as const;
let lines: { readonly fields: unknown; readonly message: string }[];
let entries: unknown[];
let changes: unknown[];
let trail: ReturnType<typeof createAuditTrail>;
let texts: Map<SlotName, string>;
let slots: ReturnType<typeof createInMemorySlots>;

beforeEach(() => {
  lines = [];
  entries = [];
  changes = [];
  trail = createAuditTrail({
    log: { info: (fields, message) => void lines.push({ fields, message }) },
    keep: (change) => void changes.push(change),
    wallNow: () => 1000,
    note: (slot, entry) => void entries.push({ slot, ...entry }),
  });
  slots = createInMemorySlots(() => undefined);
  ({ texts } = slots);
});
const messages = (): readonly string[] => lines.map(({ message }) => message);

describe('the audit trail', () => {
  test('has who changed a slot, what from and to, in the log and in the timeline', async () => {
    const editor = trail.slots(slots);
    await trail.actAs(REQUEST, async () => {
      await editor.put(PRIMARY, { model: { default: 'a' } });
      await editor.patch(PRIMARY, { model: { default: 'b' }, env: { TOKEN: 'hunter2' } });
      await editor.remove(PRIMARY);
    });
    expect(messages()).toEqual([
      '"anna" created the slot "primary": set model.default to "a"',
      '"anna" edited the slot "primary": changed model.default from "a" to "b", set env.TOKEN to "(hidden)"',
      '"anna" deleted the slot "primary"',
    ]);
    expect(lines[1]?.fields).toMatchObject({
      audit: true,
      who: 'anna',
      scope: 'admin',
      address: '10.0.0.7',
      requestId: 'r1',
      slot: 'primary',
    });
    expect(entries).toEqual(messages().map((message) => ({ slot: 'primary', kind: 'edit', message, cause: 'request r1' })));
    expect(changes[1]).toEqual({
      at: '1970-01-01T00:00:01.000Z',
      who: 'anna',
      caller: 'caller',
      scope: 'admin',
      address: '10.0.0.7',
      request_id: 'r1',
      slot: 'primary',
      message: 'edited the slot "primary": changed model.default from "a" to "b", set env.TOKEN to "(hidden)"',
    });
    expect(changes).toHaveLength(3);
    expect(JSON.stringify([lines, entries, changes])).not.toContain('hunter2');
  });

  test('has no line for what changes nothing: reads, trials, refusals, the same again', async () => {
    const editor = trail.slots(slots);
    texts.set(PRIMARY, '[model]\ndefault = "a"\n');
    await trail.actAs(REQUEST, async () => {
      await editor.read(PRIMARY);
      await editor.list();
      await editor.patch(PRIMARY, { model: { default: 'b' } }, { dryRun: true });
      await editor.remove(PRIMARY, { dryRun: true });
      await editor.patch(PRIMARY, { model: { default: 'b' } }, { ifMatch: 'other' });
      await editor.patch(PRIMARY, { nothing: 1 });
      await editor.patch(PRIMARY, { model: { default: 'a' } });
      await editor.remove(SlotName.parse('none'));
    });
    expect([lines, entries]).toEqual([[], []]);
  });

  test('has the profile that was saved, what a switch to it changed in each slot, and no line for a slot that is alike', async () => {
    const [img, stt] = [SlotName.parse('img'), SlotName.parse('stt')];
    const document = { model: { default: 'a' } };
    const store = trail.profiles(
      {
        list: async () => ({ profiles: [], problems: [] }),
        read: async () => undefined,
        save: async () => ({ kind: 'saved', created: true }),
        remove: async () => 'removed',
        apply: async (name) => ({
          kind: 'applied',
          profile: {
            name,
            problems: [],
            resourceVersion: '1',
            slots: [
              { name: PRIMARY, change: 'updated', before: document, after: { model: { default: 'b' }, env: { TOKEN: 'hunter2' } } },
              { name: img, change: 'disabled', before: document, after: { ...document, enabled: false } },
              { name: stt, change: 'unchanged', before: document, after: document },
            ],
          },
        }),
      },
      { read: async (name) => ({ name, document: {}, resourceVersion: `v-${name}` }) },
    );
    const coding = ProfileName.parse('coding');
    await trail.actAs(REQUEST, async () => {
      await store.save(coding);
      await store.apply(coding);
      await store.remove(coding);
    });
    expect(messages()).toEqual([
      '"anna" saved the profile "coding"',
      '"anna" updated the slot "primary" with the profile "coding": changed model.default from "a" to "b", set env.TOKEN to "(hidden)"',
      '"anna" disabled the slot "img" with the profile "coding": set enabled to false',
      '"anna" deleted the profile "coding"',
    ]);
    expect(entries).toEqual([
      { slot: 'primary', kind: 'edit', message: messages()[1], cause: 'request r1' },
      { slot: 'img', kind: 'edit', message: messages()[2], cause: 'request r1' },
    ]);
    expect(JSON.stringify([lines, entries])).not.toContain('hunter2');
  });

  test('has captures, also who has read one, and no key', async () => {
    const files = await openCaptures();
    const captures = trail.captures(files.open());
    await trail.actAs(REQUEST, async () => {
      const started = await captures.start({ caller: 'token:1a2b3c4d', slot: PRIMARY, requests: 5, seconds: 60 });
      const { id = '', key = '' } = 'id' in started ? started : {};
      await captures.read(id);
      await captures.list();
      await captures.stop(id);
      await captures.remove(id);
      await captures.remove(id);
      expect(messages()).toEqual([
        `"anna" started the capture "${id}" of 5 requests of the caller "token:1a2b3c4d" and the slot "primary", for 60 s at most`,
        `"anna" read the file of the capture "${id}"`,
        `"anna" stopped the capture "${id}"`,
        `"anna" deleted the capture "${id}"`,
      ]);
      expect(JSON.stringify([lines, changes])).not.toContain(key);
    });
    await files.remove();
  });

  test('has tokens without their secrets, and models', async () => {
    const tokens = trail.tokens(createInMemoryTokens());
    const models = trail.models({ pullModel: async () => ok(undefined), removeModel: async () => ok('removed') });
    const created = await trail.actAs(REQUEST, async () => await tokens.create({ label: 'ci', scope: 'v1-only' }));
    const { id, token } = Object(Object(created).value);
    await trail.actAs(REQUEST, async () => await tokens.edit(id, { label: 'build', limits: { requests_per_minute: 5 } }));
    await trail.actAs(REQUEST, async () => await tokens.edit('00000000', { label: 'none' }));
    await trail.actAs({ ...REQUEST, caller: undefined }, async () => {
      await tokens.revoke(id);
      await tokens.revoke(id);
      await models.pullModel(ModelId.parse('demo-fox'), { acceptLicense: false, url: undefined, sha256: undefined });
      await models.removeModel(ModelId.parse('demo-fox'));
    });
    expect(messages()).toEqual([
      `"anna" created the token "${id}" for "ci" with the scope "v1-only"`,
      `"anna" edited the token "${id}", which is now {"label":"build","expiresAt":null,"limits":{"requests_per_minute":5}}`,
      `"anyone" revoked the token "${id}" of "build" with the scope "v1-only"`,
      '"anyone" asked for the model "demo-fox"',
      '"anyone" removed the model "demo-fox"',
    ]);
    expect(changes[2]).toMatchObject({ who: 'anyone', caller: null, scope: null, slot: null });
    expect(JSON.stringify([lines, changes])).not.toContain(String(token).slice(13));
  });

  test('keeps callers apart whose requests run at the same time', async () => {
    const editor = trail.slots(slots);
    await Promise.all(
      ['anna', 'ben', 'cem'].map(async (identity) => {
        const act = async (): Promise<unknown> => await editor.put(SlotName.parse(identity), { provider: 'gguf', model: { default: 'a' } });
        await trail.actAs({ ...REQUEST, caller: { key: 'caller', identity, scope: 'admin' } }, act);
      }),
    );
    expect(messages().toSorted()).toEqual(
      ['anna', 'ben', 'cem'].map((who) => expect.stringContaining(`"${who}" created the slot "${who}"`)),
    );
  });
});
