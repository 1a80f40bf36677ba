/** The state directory of a running service is moved away, and comes back or is replaced by an empty one. */
import { mkdir, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { DEMO_SENTENCES } from '../../toolboxes/demo/demo-models.ts';
import { eventually } from '../support/eventually.ts';
import { chatText, isAnswering, pause, startService, type Service } from '../support/service.ts';

describe('A service whose state directory is moved', () => {
  let service: Service;
  let state: string;
  let pid: number;
  beforeAll(async () => {
    service = await startService({ runtime: 'process' });
    state = join(service.dir, 'state');
    await service.save('primary', 'backend = "cpu"\n[model]\ndefault = "demo-owl"\n');
    await service.until('primary', 'ready', isAnswering);
    pid = await processOf();
  }, 120_000);
  afterAll(() => service.dispose(), 60_000);

  const processOf = async (): Promise<number> => {
    const text = await (await fetch(`${service.url}/api/slots/primary/explain`)).text();
    return Number(/served by ..svc-slot-primary[^:]*:(\d+):/.exec(text)?.[1]);
  };
  const expectServing = async (): Promise<void> => {
    const answer = await service.chat();
    if (!answer.ok) throw new Error(await answer.text());
    expect(await chatText(answer)).toBe(DEMO_SENTENCES['demo-owl']);
    expect(await processOf()).toBe(pid);
  };
  const said = (text: string) => eventually(`the log says: ${text}`, () => service.output().includes(text));

  test('numbers its events on in the next service, so that a client resumes where it was', async () => {
    interface Event {
      readonly seq: number;
      readonly at: string;
    }
    const events = async (isEnough: (all: readonly Event[]) => boolean): Promise<readonly Event[]> => {
      const abort = new AbortController();
      const answer = await fetch(`${service.url}/api/events`, { headers: { 'last-event-id': '0' }, signal: abort.signal });
      let text = '';
      let all: readonly Event[] = [];
      for await (const chunk of answer.body ?? []) {
        text += Buffer.from(chunk).toString('utf8');
        all = [...text.matchAll(/^event: timeline\ndata: (.*)\n\n/gm)].map(([, data = '']): Event => JSON.parse(data));
        if (isEnough(all)) break;
      }
      abort.abort();
      return all;
    };
    const before = await events((all) => all.length >= 3);
    await service.kill('SIGTERM');
    const stoppedAt = new Date().toISOString();
    await service.start();
    await service.until('primary', 'ready', isAnswering);
    const all = await events((each) => each.filter(({ at }) => at > stoppedAt).length >= 2);
    expect(all.slice(0, before.length)).toEqual(before);
    expect(all.map(({ seq }) => seq)).toEqual(all.map((_each, index) => index + 1));
    pid = await processOf();
  }, 90_000);

  test('keeps serving with the same process, says so, and does not create it again', async () => {
    await rename(state, `${state}-moved`);
    await said('put it back, or create it empty');
    await expectServing();
    await pause(1000);
    await expectServing();
    expect(await stat(state).catch(() => 'missing')).toBe('missing');
  }, 60_000);

  test('goes on as before when it is moved back', async () => {
    await rename(`${state}-moved`, state);
    await said('is back and in use');
    await expectServing();
    expect(await readdir(join(state, 'run'))).toEqual(['svc-slot-primary.json']);
  }, 60_000);

  test('records everything in an empty one, so that the next service finds its processes', async () => {
    await rename(state, `${state}-moved`);
    await mkdir(state);
    await said('was replaced or emptied');
    await eventually('the status is there', async () =>
      (await readdir(join(state, 'status')).catch((): string[] => [])).includes('primary.json'),
    );
    await expectServing();
    await service.kill('SIGKILL');
    await rename(join(`${state}-moved`, 'engine'), join(state, 'engine'));
    await service.start();
    await service.until('primary', 'ready', isAnswering);
    await expectServing();
    await rm(`${state}-moved`, { recursive: true });
  }, 90_000);
});
