/** The history of a slot over kills: twenty edits, an undo to each of them, and a pause over an edit. */
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { DEMO_SENTENCES } from '../../toolboxes/demo/demo-models.ts';
import { svcctl } from '../cli/run-svcctl.ts';
import { chatText, isAnswering, startService, type Service } from '../support/service.ts';

const KEPT = 20;
/** Each has another priority, and the model changes on the way. */
const modelOf = (edit: number) => (edit % 8 < 4 ? 'demo-fox' : 'demo-owl');
const textOf = (edit: number, more = '') =>
  `# edited by hand\nbackend = "cpu"\npriority = ${edit} # of ${KEPT}\n\n[model]\ndefault = "${modelOf(edit)}" # small\n${more}`;

interface Listed {
  readonly revision: number;
  readonly who: string;
  readonly undo_of: number | null;
  readonly outcome: string;
  readonly spec: { readonly priority: number };
}

describe('The history of a slot', () => {
  let service: Service;
  beforeAll(async () => {
    service = await startService({ runtime: 'process' });
  }, 120_000);
  afterAll(() => service.dispose(), 60_000);

  const rollout = async (verb: string, ...args: readonly string[]) =>
    await svcctl(['rollout', verb, 'slot/primary', ...args], { env: { SVCCTL_SERVER: service.url } });
  const present = async (): Promise<string> => await readFile(path.join(service.configDir, 'slots', 'primary.toml'), 'utf8');
  async function history(): Promise<readonly Listed[]> {
    const { revisions }: { readonly revisions: readonly Listed[] } = JSON.parse((await rollout('history', '-o', 'json')).out);
    return revisions;
  }
  async function restart(): Promise<void> {
    await service.kill('SIGKILL');
    await service.start();
  }
  async function expectAnswerOf(edit: number): Promise<void> {
    const answer = await service.chat({ max_tokens: 24 });
    expect([answer.status, await chatText(answer)]).toEqual([200, DEMO_SENTENCES[modelOf(edit)]]);
  }

  test('keeps twenty edits by hand, also if the service is killed in between', async () => {
    for (let edit = 1; edit <= KEPT; edit += 1) {
      await service.save('primary', textOf(edit));
      expect(await rollout('status')).toEqual({ code: 0, out: 'slot/primary successfully rolled out\n', err: expect.anything() });
      if (edit % 9 === 0) await restart();
    }
    const listed = await history();
    expect(listed.map(({ revision, who, spec: { priority } }) => [revision, who, priority])).toEqual(
      Array.from({ length: KEPT }, (_, index) => [index + 1, 'file', index + 1]),
    );
    expect(listed.filter(({ outcome }) => outcome !== 'served')).toEqual([]);
  }, 300_000);

  test('returns to each of them, with its comments, and says so', async () => {
    for (let edit = 1; edit <= KEPT; edit += 1) {
      const undone = await rollout('undo', '--to-revision', String(edit), ...(edit % 9 === 0 ? [] : ['--wait']));
      expect(undone).toMatchObject({ code: 0, out: expect.stringContaining(`slot/primary rolled back to revision ${edit}: `) });
      // At once, while the service has the undo before it.
      if (edit % 9 === 0) {
        await restart();
        expect(await rollout('status')).toMatchObject({ code: 0 });
      }
      expect(await present()).toBe(textOf(edit));
      await expectAnswerOf(edit);
    }
    const listed = await history();
    expect(listed.map(({ revision, spec: { priority } }) => [revision, priority])).toEqual(
      Array.from({ length: KEPT }, (_, index) => [KEPT + index + 1, index + 1]),
    );
    expect(listed.at(-1)).toMatchObject({ undo_of: KEPT, who: 'anyone', outcome: 'served' });
    expect(await rollout('undo', '--to-revision', '1')).toMatchObject({ code: 1, err: expect.stringContaining('Revision 1 is not kept') });
  }, 300_000);

  test('an edit waits while rollouts are paused, also over a kill, and what was in force serves', async () => {
    expect(await rollout('pause')).toMatchObject({ code: 0, out: 'slot/primary paused\n' });
    const paused = '\n[rollout]\npaused = true\n';
    expect(await present()).toBe(textOf(KEPT, paused));
    const edit = KEPT + 4;
    expect(modelOf(edit)).not.toBe(modelOf(KEPT));
    await service.save('primary', textOf(edit, paused));
    const waits = await rollout('status', '--timeout', '20s');
    expect(waits).toMatchObject({ code: 1, err: expect.stringContaining('The edit of slot "primary" waits, because rollouts are paused') });
    await expectAnswerOf(KEPT);
    await restart();
    await service.until('primary', 'answering', isAnswering);
    await expectAnswerOf(KEPT);
    expect(await rollout('undo')).toMatchObject({ code: 1, err: expect.stringContaining('svcctl rollout resume slot/primary') });
    expect((await history()).some(({ spec: { priority } }) => priority === edit)).toBe(false);
    expect(await rollout('resume', '--wait')).toMatchObject({ code: 0 });
    expect((await present()).trimEnd()).toBe(textOf(edit).trimEnd());
    await expectAnswerOf(edit);
    expect((await history()).at(-1)).toMatchObject({ outcome: 'served', spec: { priority: edit } });
  }, 120_000);
});
