/** A model file is replaced by a rename while its slot serves. */
import { copyFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { DEMO_SENTENCES } from '../../toolboxes/demo/demo-models.ts';
import { eventually } from '../support/eventually.ts';
import { chatText, isAnswering, startService, type Service } from '../support/service.ts';

let service: Service;
beforeAll(async () => {
  service = await startService({ runtime: 'process' });
}, 120_000);
afterAll(() => service.dispose(), 60_000);

test('the slot swaps to the new file, and every request meanwhile is answered by one of the two', async () => {
  const own = join(service.modelsDir, 'own.gguf');
  const replaceBy = async (name: string): Promise<void> => {
    await copyFile(join(service.modelsDir, 'demo', `${name}.gguf`), `${own}.new`);
    await rename(`${own}.new`, own);
  };
  await replaceBy('demo-owl');
  await service.save('primary', 'backend = "cpu"\n[model]\ndefault = "own.gguf"\n');
  await service.until('primary', 'ready', isAnswering);
  expect(await chatText(await service.chat())).toBe(DEMO_SENTENCES['demo-owl']);
  await replaceBy('demo-fox');
  const answers = new Set<string>();
  await eventually(
    'the new file answers',
    async () => {
      answers.add(await chatText(await service.chat()));
      return answers.has(DEMO_SENTENCES['demo-fox']);
    },
    60_000,
  );
  expect([...answers].filter((text) => text !== DEMO_SENTENCES['demo-owl'])).toEqual([DEMO_SENTENCES['demo-fox']]);
}, 120_000);
