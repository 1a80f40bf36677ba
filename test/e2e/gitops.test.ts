/** A service whose slots a repository declares: many commits with mistakes among them under load, webhooks, kills, signatures. */
import { createHmac } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { svcctl } from '../cli/run-svcctl.ts';
import { eventually } from '../support/eventually.ts';
import { describeWithSshd, makeKey, startGitHttp, startGitSsh, type GitHttpServer, type GitSshServer } from '../support/git/git-servers.ts';
import { createTestRepository, slotText, type TestRepository } from '../support/git/repository.ts';
import { isAnswering, startService, type Service } from '../support/service.ts';

/** The last one is good. `SVC_TEST_COMMITS=43` makes as few as have each mistake. */
const COMMITS = Number(process.env['SVC_TEST_COMMITS'] ?? 200);
const SERVING = (priority: number) => `backend = "cpu"\npriority = ${priority}\n[model]\ndefault = "demo-fox"\n`;
/** Each is the mistake of every seventh commit, in turn. */
const MISTAKES = [
  'enabled = yes\n',
  'nothing = 1\n',
  { link: '/etc/passwd' },
  'version https://git-lfs.github.com/spec/v1\n',
  Buffer.from([0xff, 0xfe, 1, 0]),
];

interface Status {
  readonly state: string;
  readonly revision: string | null;
  readonly problem: { readonly reason: string; readonly commit: string | null; readonly message: string } | null;
}

const statusOf = async (service: Service): Promise<Status> => JSON.parse(await (await fetch(`${service.url}/api/source`)).text());

async function sync(service: Service): Promise<Status> {
  const answer = await fetch(`${service.url}/api/source/sync`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{}',
  });
  return JSON.parse(await answer.text());
}

const source = async (service: Service, ...args: readonly string[]) => await svcctl(args, { env: { SVCCTL_SERVER: service.url } });

describe('A repository over HTTP', () => {
  const secret = 'a-secret-of-webhooks';
  let repository: TestRepository;
  let http: GitHttpServer;
  let service: Service;
  let keys: string;
  let first: string;
  beforeAll(async () => {
    repository = await createTestRepository();
    http = await startGitHttp(repository.root);
    keys = await mkdtemp(path.join(tmpdir(), 'svc-hook-'));
    await writeFile(path.join(keys, 'secret'), `${secret}\n`);
    first = await repository.commit('first', { 'slots/primary.toml': SERVING(1), 'slots/embed.toml': slotText(1) });
    const environment = { SVC_GIT_URL: http.url, SVC_GIT_INTERVAL: '1h', SVC_GIT_WEBHOOK_SECRET_FILE: path.join(keys, 'secret') };
    service = await startService({ runtime: 'process', environment });
    await service.until('primary', 'answering', (slot) => slot !== undefined && isAnswering(slot), 60_000);
  }, 180_000);
  afterAll(async () => {
    await service.dispose();
    await http.stop();
    await Promise.all([repository.remove(), rm(keys, { recursive: true })]);
  }, 60_000);

  test('many commits, with mistakes among them, under load: each good one is in force, each bad one is named, and no request fails', async () => {
    const stopping = new AbortController();
    const seen: { ok: number; readonly other: number[] } = { ok: 0, other: [] };
    const load = Array.from({ length: 2 }, async () => {
      while (!stopping.signal.aborted) {
        const { status, body } = await service.chat({ max_tokens: 8 });
        await body?.cancel();
        if (status === 200) seen.ok += 1;
        else seen.other.push(status);
        await sleep(20);
      }
    });
    let good = (await statusOf(service)).revision;
    for (let number = 2; number <= COMMITS; number += 1) {
      const isBad = number % 7 === 0;
      const mistake = isBad ? (MISTAKES[(number / 7) % MISTAKES.length] ?? null) : null;
      const commit = await repository.commit(`commit ${number}`, { 'slots/primary.toml': SERVING(number), 'slots/bad.toml': mistake });
      const status = await sync(service);
      if (isBad)
        expect([status.state, status.revision, status.problem]).toEqual([
          'OutOfSync',
          good,
          expect.objectContaining({ reason: 'CommitInvalid', commit }),
        ]);
      else expect([status.state, status.revision, status.problem]).toEqual(['Synced', (good = commit), null]);
      const present = await readFile(path.join(service.configDir, 'slots/primary.toml'), 'utf8');
      expect(present).toBe(SERVING(isBad ? number - 1 : number));
    }
    stopping.abort();
    await Promise.all(load);
    expect(seen.other).toEqual([]);
    expect(seen.ok).toBeGreaterThan(20);
    await eventually('the last commit is in force in the slot', async () => {
      const { spec }: { readonly spec: { readonly priority: number } } = JSON.parse(
        await (await fetch(`${service.url}/api/slots/primary`)).text(),
      );
      return spec.priority === COMMITS;
    });
  }, 900_000);

  test('a signed webhook fetches soon; one that is not signed is refused', async () => {
    const commit = await repository.commit('by webhook', { 'slots/primary.toml': SERVING(500) });
    const body = JSON.stringify({ ref: 'refs/heads/main', after: commit });
    const hook = async (signature: string): Promise<number> =>
      (
        await fetch(`${service.url}/api/source/sync`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', 'x-hub-signature-256': signature },
          body,
        })
      ).status;
    const sign = (key: string): string => `sha256=${createHmac('sha256', key).update(body).digest('hex')}`;
    expect([await hook(sign('another-secret-here')), await hook('sha256='), await hook('')]).toEqual([401, 401, 401]);
    expect((await statusOf(service)).revision).not.toBe(commit);
    expect(await hook(sign(secret))).toBe(202);
    await eventually('the commit is in force', async () => (await statusOf(service)).revision === commit, 30_000);
  }, 60_000);

  test('an undo is refused with the command that reverts the commit, and that command works', async () => {
    const commit = await repository.commit('regret', { 'slots/primary.toml': SERVING(501) });
    await sync(service);
    const undo = await source(service, 'rollout', 'undo', 'slot/primary');
    expect([undo.code, undo.err]).toEqual([1, expect.stringContaining(`"git revert ${commit}" and a push undo it`)]);
    await repository.git(['revert', '--no-edit', commit]);
    await repository.push();
    expect(await sync(service)).toMatchObject({ state: 'Synced' });
    expect(await readFile(path.join(service.configDir, 'slots/primary.toml'), 'utf8')).toBe(SERVING(500));
    const history = await source(service, 'rollout', 'history', 'slot/primary');
    expect(history.out).toContain(`git ${commit.slice(0, 12)}, Anna <anna@example.com>`);
  }, 60_000);

  test('svcctl shows the state, a difference and a suspension', async () => {
    expect(await source(service, 'source', 'diff')).toEqual({ code: 0, out: '', err: '' });
    await service.save('primary', SERVING(7));
    const diff = await source(service, 'source', 'diff');
    expect(diff).toEqual({ code: 2, err: '', out: 'slots/primary.toml\n- priority = 7\n+ priority = 500\n' });
    expect((await source(service, 'source', 'status')).out).toMatch(/State: +OutOfSync[^]*slots\/primary\.toml +OutOfSync +edited/);
    expect((await source(service, 'source', 'suspend')).out).toBe('source suspended\n');
    expect(await source(service, 'source', 'sync')).toMatchObject({ code: 1, err: expect.stringContaining('svcctl source resume') });
    expect((await source(service, 'source', 'resume')).out).toBe('source resumed\n');
    expect(await source(service, 'source', 'sync')).toMatchObject({ code: 0, out: expect.stringContaining('Synced') });
    expect(await readFile(path.join(service.configDir, 'slots/primary.toml'), 'utf8')).toBe(SERVING(500));
    expect(first).not.toBe('');
  }, 60_000);

  test('while the server of the repository is away, what was applied serves, also after a restart', async () => {
    http.mode = { credential: 'x:y' };
    expect(await sync(service)).toMatchObject({
      state: 'Unknown',
      problem: { reason: 'FetchFailed', message: expect.stringContaining('SVC_GIT_KEY') },
    });
    await service.kill('SIGKILL');
    await service.start();
    await service.until('primary', 'answering', (slot) => slot !== undefined && isAnswering(slot), 60_000);
    expect((await service.chat({ max_tokens: 8 })).status).toBe(200);
    http.mode = 'serve';
    expect(await sync(service)).toMatchObject({ state: 'Synced', problem: null });
  }, 120_000);
});

describeWithSshd('A repository over SSH, with signatures and self-heal', () => {
  const SLOTS = Array.from({ length: 60 }, (_, index) => `slot${index}`);
  let repository: TestRepository;
  let ssh: GitSshServer;
  let service: Service;
  let keys: string;
  beforeAll(async () => {
    repository = await createTestRepository();
    ssh = await startGitSsh(repository.root);
    keys = await mkdtemp(path.join(tmpdir(), 'svc-keys-'));
    for (const name of ['anna', 'stranger']) makeKey(path.join(keys, name));
    await writeFile(path.join(keys, 'allowed'), `anna@example.com ${await readFile(path.join(keys, 'anna.pub'), 'utf8')}`);
    await commitAll(1);
    const environment = {
      SVC_GIT_URL: ssh.url,
      SVC_GIT_KEY: ssh.keyFile,
      SVC_GIT_KNOWN_HOSTS: ssh.knownHosts,
      SVC_GIT_ALLOWED_SIGNERS: path.join(keys, 'allowed'),
      SVC_GIT_SELF_HEAL: 'on',
      SVC_GIT_INTERVAL: '1h',
    };
    service = await startService({ runtime: 'process', environment });
    await eventually('the first commit is in force', async () => (await statusOf(service)).state === 'Synced', 60_000);
  }, 180_000);
  afterAll(async () => {
    await service.dispose();
    await ssh.stop();
    await Promise.all([repository.remove(), rm(keys, { recursive: true })]);
  }, 60_000);

  const signing = (name: string): readonly string[] => ['-c', 'gpg.format=ssh', '-c', `user.signingkey=${path.join(keys, name)}`];
  async function commitAll(priority: number, signer: string | null = 'anna'): Promise<string> {
    for (const name of SLOTS) await repository.write(`slots/${name}.toml`, slotText(priority, '', 'gguf'));
    await repository.git(['add', '--all']);
    await repository.git([
      ...(signer === null ? [] : signing(signer)),
      'commit',
      '--quiet',
      '--allow-empty',
      '-m',
      `priority ${priority}`,
      signer === null ? '--no-gpg-sign' : '--gpg-sign',
    ]);
    await repository.push();
    return await repository.git(['rev-parse', 'HEAD']);
  }
  const priorities = async (): Promise<ReadonlySet<string>> =>
    new Set(
      await Promise.all(
        SLOTS.map(
          async (name) => /priority = (\d+)/.exec(await readFile(path.join(service.configDir, `slots/${name}.toml`), 'utf8'))?.[1] ?? '',
        ),
      ),
    );

  test('commits without a signature, or by a stranger, change nothing and are named', async () => {
    for (const signer of [null, 'stranger']) {
      const commit = await commitAll(2, signer);
      expect(await sync(service)).toMatchObject({ state: 'OutOfSync', problem: { reason: 'SignatureRefused', commit } });
      expect(await priorities()).toEqual(new Set(['1']));
    }
    const commit = await commitAll(3);
    expect(await sync(service)).toMatchObject({ state: 'Synced', revision: commit, problem: null });
    expect(await priorities()).toEqual(new Set(['3']));
  }, 120_000);

  test('a service that is killed at any time has all of a commit or nothing of it when it is back', async () => {
    for (let round = 0; round < 6; round += 1) {
      const commit = await commitAll(10 + round);
      const syncing = sync(service).catch(() => undefined);
      await sleep(60 + round * 90);
      await service.kill('SIGKILL');
      await syncing;
      await service.start();
      expect((await priorities()).size).toBe(1);
      expect(await sync(service)).toMatchObject({ state: 'Synced', revision: commit });
      expect(await priorities()).toEqual(new Set([String(10 + round)]));
    }
  }, 240_000);

  test('local edits are put back, and refused with the reason by the API; a restart is not', async () => {
    const before = await readFile(path.join(service.configDir, 'slots/slot0.toml'), 'utf8');
    await service.save('slot0', before.replace('priority = 15', 'priority = 99'));
    await eventually(
      'it is put back',
      async () => (await readFile(path.join(service.configDir, 'slots/slot0.toml'), 'utf8')) === before,
      20_000,
    );
    const refused = await source(service, 'slot', 'load', 'slot0');
    expect([refused.code, refused.err]).toEqual([
      1,
      expect.stringMatching(
        /declares slot "slot0" .*edit "slots\/slot0.toml" there, or stop this with "svcctl source suspend".*source\.managed/s,
      ),
    ]);
    expect(await source(service, 'slot', 'restart', 'slot0')).toMatchObject({ code: 0 });
    expect(await sync(service)).toMatchObject({ state: 'Synced' });
    expect(await readFile(path.join(service.configDir, 'slots/slot0.toml'), 'utf8')).toContain('restarted_at');
  }, 60_000);
});
