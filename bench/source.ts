/** How soon a commit that changes one of 200 slots acts: from a repository on this machine, by the real `git`, in a service with no other work. */
import { createTestRepository, slotText, type TestRepository } from '../test/support/git/repository.ts';
import { startService, type Service } from '../test/support/service.ts';
import { atMost, median, note, type Row } from './measure.ts';

const SLOTS = 200;
const COMMITS = 20;
const POLL_MS = 2;

export async function measureSource(): Promise<readonly Row[]> {
  const repository = await createTestRepository();
  try {
    const files = Array.from({ length: SLOTS }, (_none, index) => [`slots/slot-${index}.toml`, slotText(0, '', 'gguf')] as const);
    await repository.commit('first', Object.fromEntries(files));
    const service = await startService({ runtime: 'process', environment: { SVC_GIT_URL: repository.url, SVC_GIT_INTERVAL: '1h' } });
    try {
      await reach(service, `slot-${SLOTS - 1}`, 1);
      return await measure(service, repository);
    } finally {
      await service.dispose();
    }
  } finally {
    await repository.remove();
  }
}

async function measure(service: Service, repository: TestRepository): Promise<readonly Row[]> {
  const times: Record<'fetch' | 'commit', number[]> = { fetch: [], commit: [] };
  for (let count = 1; count <= COMMITS; count += 1) {
    times.fetch.push(await timed(async () => sync(service)));
    const slot = `slot-${count * 7}`;
    await repository.commit(`change ${count}`, { [`slots/${slot}.toml`]: slotText(count, '', 'gguf') });
    times.commit.push(
      await timed(async () => {
        await sync(service);
        await reach(service, slot, 2);
      }),
    );
  }
  const fetched = median(times.fetch);
  return [
    note('fetch without a new commit, median', `${fetched.toFixed(0)} ms`),
    atMost(`after the fetch, a commit that changes one of ${SLOTS} slots acts, median`, median(times.commit) - fetched, {
      limit: 1000,
      unit: 'ms',
      digits: 0,
    }),
    atMost('the slowest of them', Math.max(...times.commit) - fetched, { limit: 1000, unit: 'ms', digits: 0 }),
  ];
}

async function timed(work: () => Promise<void>): Promise<number> {
  const begun = performance.now();
  await work();
  return performance.now() - begun;
}

async function sync(service: Service): Promise<void> {
  const headers = { 'content-type': 'application/json' };
  const answer = await fetch(`${service.url}/api/source/sync`, { method: 'POST', headers, body: '{}' });
  const status: { readonly state?: string } = JSON.parse(await answer.text());
  if (status.state !== 'Synced') throw new Error(`The repository is ${status.state ?? answer.status}`);
}

/** Waits until the controller has published this generation of a slot. */
async function reach(service: Service, slot: string, generation: number): Promise<void> {
  for (;;) {
    const answer = await fetch(`${service.url}/api/slots/${slot}`);
    const found: { readonly generation?: number } = JSON.parse(await answer.text());
    if ((found.generation ?? 0) >= generation) return;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}
