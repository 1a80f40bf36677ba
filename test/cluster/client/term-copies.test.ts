import { afterEach, expect, test } from '@jest/globals';
import { createReflector } from '../../../src/cluster/client/reflector.ts';
import { CONFIG_MAPS } from '../../../src/cluster/client/decide/resource-path.ts';
import { createTermCopies } from '../../../src/cluster/client/term-copies.ts';
import { startFakeKubeApi, type FakeKubeApi } from '../../support/kube/fake-kube-api.ts';
import { connectToFake } from '../../support/kube/fake-kube-client.ts';
import { eventually } from '../../support/eventually.ts';

let fake: FakeKubeApi;
afterEach(async () => await fake.close());

const put = (name: string) => fake.put(CONFIG_MAPS, 'default', { metadata: { name } });

test('Copies of a term are empty before and after it, and contain the newest state once it has begun', async () => {
  fake = await startFakeKubeApi();
  const api = await connectToFake(fake);
  const copies = createTermCopies();
  const copy = copies.add(() => createReflector({ api, type: CONFIG_MAPS }));
  const ever = new AbortController();
  let woken = 0;
  copy.changes(() => void (woken += 1), ever.signal);
  copy.start(ever.signal);
  put('a');
  expect([copy.items().size, copy.health().kind, fake.faults.count()]).toEqual([0, 'current', 0]);

  const first = new AbortController();
  fake.lists.freezeCache();
  put('b');
  await copies.begin(first.signal);
  expect([...copy.items().keys()]).toEqual(['a', 'b']);
  expect(woken).toBeGreaterThan(0);
  put('c');
  await eventually('it follows', () => copy.items().has('c'));

  first.abort();
  expect([copy.items().size, copy.health().kind]).toEqual([0, 'current']);
  await eventually('its watch has ended', () => fake.watches.count() === 0);

  const second = new AbortController();
  await copies.begin(second.signal);
  expect(copy.items().size).toBe(3);
  second.abort();
});

test('The wait for copies ends with the term', async () => {
  fake = await startFakeKubeApi();
  fake.faults.answer({}, { status: 500 });
  const api = await connectToFake(fake);
  const copies = createTermCopies();
  const copy = copies.add(() => createReflector({ api, type: CONFIG_MAPS }));
  const term = new AbortController();
  const begun = copies.begin(term.signal);
  await eventually('a list has failed', () => copy.health().kind === 'unreachable');
  term.abort();
  await begun;
  expect(copy.health().kind).toBe('current');
});
