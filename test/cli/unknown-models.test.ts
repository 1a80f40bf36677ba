/** Verbs that would write the name of a model that nothing provides. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { SlotName } from '../../src/schema/words/names.ts';
import { startWorld, type World } from '../api/manage/world.ts';
import { UNKNOWN_MODEL } from '../api/manage/world-models.ts';
import { svcctl, type RunOptions } from './run-svcctl.ts';

let world: World;
beforeAll(async () => {
  world = await startWorld({ loadMs: 0 });
});
afterAll(() => world.close());

const run = (args: readonly string[], options: RunOptions = {}) => svcctl(args, { ...options, env: { SVCCTL_SERVER: world.url } });
const resource = (name: string, model: string) =>
  `apiVersion: inference.svc.dev/v1alpha1\nkind: SlotSpec\nmetadata: { name: ${name} }\nspec: { provider: gguf, model: { default: ${model} } }\n`;

test('create refuses a model that nothing provides, unless --force is given', async () => {
  const create = ['slot', 'create', 'mine', '--model', UNKNOWN_MODEL, '--provider', 'gguf'];
  const refused = await run(create);
  expect(refused).toMatchObject({ code: 1, out: '', err: expect.stringMatching(/^error: .*\nhint: .*--force\n$/) });
  expect(world.slots.texts.has(SlotName.parse('mine'))).toBe(false);
  expect(await run([...create, '--force'])).toMatchObject({ code: 0, out: 'slot/mine created\n' });
  await run(['slot', 'delete', 'mine', '--wait']);
});

test('apply writes nothing if nothing provides one of its models, unless --force is given, and accepts what is there', async () => {
  const input = `${resource('fine', 'w')}---\n${resource('lost', UNKNOWN_MODEL)}`;
  for (const more of [[], ['--dry-run']]) {
    const refused = await run(['apply', '-f', '-', ...more], { input });
    expect(refused).toMatchObject({ code: 1, out: '', err: expect.stringMatching(/^error: .*\nhint: .*--force\n$/) });
  }
  expect(world.slots.texts.has(SlotName.parse('fine'))).toBe(false);
  expect(await run(['apply', '-f', '-', '--force'], { input })).toMatchObject({ code: 0, out: 'slot/fine created\nslot/lost created\n' });
  expect(await run(['apply', '-f', '-'], { input })).toMatchObject({ code: 0, out: 'slot/fine unchanged\nslot/lost unchanged\n' });
  await run(['slot', 'delete', 'fine', 'lost', '--wait']);
});
