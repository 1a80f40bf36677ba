/** The configuration source and paused rollouts in the dashboard, with a repository that a real git server exports. */
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import { startGitHttp, type GitHttpServer } from '../support/git/git-servers.ts';
import { createTestRepository, type TestRepository } from '../support/git/repository.ts';
import { describeWithBrowser } from '../support/require/require-browser.ts';
import { startService, type Service } from '../support/service.ts';
import { accessibilityFaults, LOOKS, picture, setUpBrowser } from './visit.ts';

const TEXT = (priority: number) => `enabled = false\nbackend = "cpu"\npriority = ${priority}\n[model]\ndefault = "demo-fox"\n`;

describeWithBrowser('the configuration source in the dashboard', () => {
  const visit = setUpBrowser();
  let repository: TestRepository;
  let http: GitHttpServer;
  let service: Service;
  let first: string;
  beforeAll(async () => {
    repository = await createTestRepository();
    http = await startGitHttp(repository.root);
    first = await repository.commit('The first commit', { 'slots/primary.toml': TEXT(1) });
    service = await startService({ runtime: 'process', environment: { SVC_GIT_URL: http.url, SVC_GIT_INTERVAL: '1h' } });
    await service.until('primary', 'known', (slot) => slot !== undefined, 60_000);
  }, 120_000);
  afterAll(async () => {
    await service.dispose();
    await http.stop();
    await repository.remove();
  });

  const fileOf = (): string => path.join(service.configDir, 'slots/primary.toml');

  test('says what is in force and what differs, and syncs', async () => {
    const page = await visit(`${service.url}/#/settings`);
    const panel = page.locator('.source');
    await panel.getByText('Synced', { exact: true }).waitFor();
    await panel.getByText(first.slice(0, 10)).first().waitFor();
    await panel.getByText('The first commit').waitFor();
    await writeFile(fileOf(), TEXT(7));
    await panel.getByText('Out of sync').waitFor({ timeout: 30_000 });
    await panel.getByRole('cell', { name: 'edited here' }).waitFor();
    await panel.getByRole('button', { name: 'Show differences' }).click();
    await panel.getByRole('region', { name: 'Here' }).getByText('priority = 7').waitFor();
    await panel.getByRole('region', { name: 'After a sync' }).getByText('priority = 1').waitFor();
    await picture(page, 'settings-source');
    expect(await accessibilityFaults(page)).toEqual([]);
    await panel.getByRole('button', { name: 'Sync now' }).click();
    await panel.getByText('Synced', { exact: true }).waitFor();
    expect(await readFile(fileOf(), 'utf8')).toBe(TEXT(1));
  }, 90_000);

  test('names the mistake of a commit, and can be suspended', async () => {
    const commit = await repository.commit('A mistake', { 'slots/primary.toml': 'nothing = 1\n' });
    const page = await visit(`${service.url}/#/settings`);
    const panel = page.locator('.source');
    await panel.getByRole('button', { name: 'Sync now' }).click();
    await panel
      .getByRole('alert')
      .filter({ hasText: commit.slice(0, 10) })
      .waitFor();
    await panel.getByRole('alert').filter({ hasText: 'nothing' }).waitFor();
    await repository.commit('A repair', { 'slots/primary.toml': TEXT(2) });
    await panel.getByRole('button', { name: 'Suspend' }).click();
    await panel.getByText('Suspended').waitFor();
    expect(await panel.getByRole('button', { name: 'Sync now' }).isDisabled()).toBe(true);
    await panel.getByRole('button', { name: 'Resume' }).click();
    await panel.getByRole('button', { name: 'Sync now', disabled: false }).click();
    await panel.getByText('A repair').waitFor();
    await eventually('the repair is in force', async () => (await readFile(fileOf(), 'utf8')) === TEXT(2), 30_000);
  }, 90_000);

  test.each(LOOKS)(
    'is legible in %o',
    async (look) => {
      const page = await visit(`${service.url}/#/settings`, look);
      await page.locator('.source').getByText('Applied commit').waitFor();
      await picture(page, `settings-source-${look.theme}-${look.width}`);
      expect(await accessibilityFaults(page)).toEqual([]);
    },
    60_000,
  );
});

describeWithBrowser('paused rollouts in the dashboard', () => {
  const visit = setUpBrowser();
  let service: Service;
  beforeAll(async () => {
    service = await startService({ runtime: 'process' });
    await service.save('primary', TEXT(1));
    await service.until('primary', 'known', (slot) => slot !== undefined, 60_000);
  }, 120_000);
  afterAll(async () => {
    await service.dispose();
  });

  test('keep edits without effect until they are resumed', async () => {
    const page = await visit(`${service.url}/#/slots/primary/history`);
    const read = async (): Promise<string> => await readFile(path.join(service.configDir, 'slots/primary.toml'), 'utf8');
    await page.getByText('Edits take effect at once.').waitFor();
    await page.getByRole('button', { name: 'Pause rollouts' }).click();
    await page.getByText('Rollouts are paused: edits are kept, and take effect when they are resumed.').waitFor();
    expect(await read()).toBe(`${TEXT(1)}\n[rollout]\npaused = true\n`);
    await picture(page, 'history-paused');
    expect(await accessibilityFaults(page)).toEqual([]);
    await page.getByRole('button', { name: 'Resume rollouts' }).click();
    await page.getByText('Edits take effect at once.').waitFor();
    expect(await read()).toBe(TEXT(1));
  }, 60_000);
});
