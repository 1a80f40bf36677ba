import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { DEMO_SENTENCES, writeDemoModels } from '../../../toolboxes/demo/demo-models.ts';
import { describeWithPodman } from '../../support/require/require-podman.ts';
import { llamaServerInPodman, startServer } from './running-server.ts';
import { post, serverContract } from './server-contract.ts';

describeWithPodman('The real llama-server, started by the provider,', () => {
  serverContract(llamaServerInPodman());

  test('serves chat and embeddings in one process if the slot sets --embeddings', async () => {
    const modelsDir = await mkdtemp(path.join(tmpdir(), 'svc-gguf-'));
    await writeDemoModels(modelsDir);
    const server = await startServer(llamaServerInPodman(), modelsDir, {
      name: 'primary',
      model: 'demo-fox',
      document: { model: { default: 'demo-fox', args: ['--embeddings'] } },
    });
    try {
      const chat = await post(server, '/v1/chat/completions', { messages: [{ role: 'user', content: 'Hello' }] });
      expect(JSON.stringify(chat.body)).toContain(DEMO_SENTENCES['demo-fox']);
      expect((await post(server, '/v1/embeddings', { input: 'Hello' })).status).toBe(200);
    } finally {
      await server.stop();
      await rm(modelsDir, { recursive: true, force: true });
    }
  }, 60_000);
});
