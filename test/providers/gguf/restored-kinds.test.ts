/** The real llama-server goes on with prompts that it has restored, whatever its layers keep of them: what `svc` keeps of a slot is of use to the next server. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { writeLargeModel } from '../../../bench/large-model.ts';
import { fileOf, KINDS, tokensFrom, withServer } from '../../../bench/swap-kinds.ts';
import { ask, move } from '../../../bench/swap-server.ts';
import { directoryOfLlamaServer } from '../../support/llama-server.ts';
import { describeWithPodman } from '../../support/require/require-podman.ts';

const FILE = 'kept.prompt';
const PROMPT = tokensFrom(0, 700);
const NEXT = tokensFrom(1000, 30);

describeWithPodman('A restored prompt', () => {
  const path0 = process.env['PATH'];
  let directory: string;
  beforeAll(async () => {
    process.env['PATH'] = `${await directoryOfLlamaServer()}:${path0 ?? ''}`;
    directory = await mkdtemp(path.join(tmpdir(), 'svc-restored-kinds-'));
  }, 60_000);
  afterAll(async () => {
    process.env['PATH'] = path0;
    await rm(directory, { recursive: true, force: true });
  });

  test.each(Object.entries(KINDS))(
    'is not computed again in the next turn, nor after a probe: %s',
    async (kind, model) => {
      await writeLargeModel(path.join(directory, fileOf(kind)), model);
      const first = await withServer(directory, { kind }, async (server) => {
        const answer = await ask(server, PROMPT);
        expect((await move(server, 'save', FILE)).status).toBe(200);
        return answer;
      });
      const again = await withServer(directory, { kind }, async (server) => {
        expect((await move(server, 'restore', FILE)).status).toBe(200);
        await ask(server, tokensFrom(3000, 3), 1);
        return await ask(server, [...PROMPT, ...first.tokens, ...NEXT]);
      });
      expect([first.computed, again.computed]).toEqual([PROMPT.length, NEXT.length + 1]);
    },
    120_000,
  );
});
