/** The dashboard in a cluster: the leader, and why pods do not run. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { PodListing } from '../../src/schema/status/cluster-listing.ts';
import { SlotName } from '../../src/schema/words/names.ts';
import { startWorld, type World } from '../api/manage/world.ts';
import { eventually } from '../support/eventually.ts';
import { describeWithBrowser } from '../support/require/require-browser.ts';
import { accessibilityFaults, LOOKS, picture, setUpBrowser } from './visit.ts';

const PRIMARY = SlotName.parse('primary');
const EMBED = SlotName.parse('embed');

const pod = (slot: SlotName, suffix: string, rest: Partial<PodListing> = {}): PodListing => ({
  name: `svc-slot-${slot}-6c9d8f7b5c-${suffix}`,
  slot,
  phase: 'Running',
  ready: true,
  terminating: false,
  restarts: 0,
  node: 'worker-1.cluster.example',
  createdAt: Date.now() - 3_600_000,
  waiting: undefined,
  ...rest,
});
const UNSCHEDULABLE = {
  reason: 'Unschedulable' as const,
  message: 'No node has room for the pod: 0/3 nodes are available, 3 Insufficient nvidia.com/gpu. Add a node, or unload another slot',
};
const CRASHED = { reason: 'Crashed' as const, message: 'A replica exited with code 3 and is being restarted: unknown argument "--fast"' };

describeWithBrowser('the dashboard of a cluster', () => {
  const visit = setUpBrowser();
  let world: World;

  beforeAll(async () => {
    world = await startWorld({ dashboard: 'dashboard/dist', runtime: 'kube' });
    for (const slot of [PRIMARY, EMBED]) world.save(slot, 'provider = "gguf"\nbackend = "cpu"\n[model]\ndefault = "demo-fox"\n');
    await world.idle();
    world.cluster = {
      replica: 'svc-7f64d9c8b4-tx9zk',
      leader: 'svc-7f64d9c8b4-q2m5n',
      leads: false,
      pods: [
        pod(PRIMARY, 'aaaaa'),
        pod(PRIMARY, 'bbbbb', { ready: false, restarts: 4, waiting: CRASHED }),
        pod(PRIMARY, 'ccccc', { ready: false, phase: 'Pending', node: undefined, waiting: UNSCHEDULABLE }),
        pod(PRIMARY, 'ddddd', { ready: false, terminating: true }),
        pod(EMBED, 'eeeee'),
      ],
    };
  }, 120_000);
  afterAll(async () => {
    await world.close();
  });

  test('names the leader and the serving gateway, and lists the pods of all slots', async () => {
    const page = await visit(`${world.url}/#/hardware`);
    const gateway = page.locator('.gateways');
    await gateway.getByText('svc-7f64d9c8b4-q2m5n').waitFor();
    expect(await gateway.textContent()).toContain('svc-7f64d9c8b4-tx9zk');
    expect(await page.locator('.pods li').count()).toBe(5);
    await page.getByText('2 of 5 ready').waitFor();
    await page.locator('.pods').getByRole('link', { name: 'embed' }).click();
    await page.getByRole('dialog', { name: 'embed' }).locator('.tree').getByText('eeeee').waitFor();
  }, 60_000);

  test('shows in the drawer of a slot why its pods do not run, and updates them', async () => {
    const page = await visit(`${world.url}/#/slots/primary/explain`);
    const pods = page.getByRole('dialog', { name: 'primary' }).locator('.tree li').filter({ hasText: /^pod / });
    await pods.first().waitFor();
    expect(await pods.allTextContents()).toEqual([
      expect.stringMatching(/bbbbb Crashed.*node worker-1.*restarts 4\s+A replica exited with code 3/),
      expect.stringMatching(/ccccc Unschedulable.*Insufficient nvidia.com\/gpu/),
      expect.stringContaining('ddddd Terminating'),
      expect.stringContaining('aaaaa Ready'),
    ]);
    const { cluster } = world;
    if (cluster !== undefined) world.cluster = { ...cluster, pods: [pod(PRIMARY, 'fffff')] };
    await eventually('only the new pod', async () => (await pods.allTextContents()).join().includes('fffff'));
    expect(await pods.count()).toBe(1);
    world.cluster = cluster;
  }, 60_000);

  test('groups the table of slots by node', async () => {
    const page = await visit(`${world.url}/#/slots?view=table&group=node`);
    const groups = page.locator('.slot-table th[scope=rowgroup]');
    await eventually('the node is known', async () => (await groups.allTextContents()).join() === 'worker-1.cluster.example (2)');
  }, 60_000);

  test('offers no profiles', async () => {
    const page = await visit(`${world.url}/#/hardware`);
    await page.locator('.gateways').waitFor();
    const refused = page.waitForResponse((response) => response.url().endsWith('/api/profiles'));
    await page.evaluate(`location.hash = '#/slots'`);
    expect((await refused).status()).toBe(422);
    await page.locator('.card').first().waitFor();
    await page.evaluate('new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))');
    expect(await page.getByRole('group', { name: 'Profiles' }).count()).toBe(0);
    expect(await page.getByRole('alert').count()).toBe(0);
  }, 60_000);

  test.each(LOOKS)(
    'has no accessibility violations and no overflow: $theme, $width px',
    async (look) => {
      const page = await visit(`${world.url}/#/hardware`, look);
      for (const place of ['hardware', 'slots/primary/explain']) {
        await page.evaluate(`location.hash = '#/${place}'`);
        await page.getByText('bbbbb').locator('visible=true').last().waitFor();
        expect([place, await accessibilityFaults(page)]).toEqual([place, []]);
        expect([place, await page.evaluate('document.documentElement.scrollWidth - innerWidth')]).toEqual([place, 0]);
        await picture(page, `cluster-${place.replaceAll('/', '-')}-${look.theme}-${look.width}`);
      }
    },
    120_000,
  );
});

describeWithBrowser('the dashboard of a machine', () => {
  const visit = setUpBrowser();
  let world: World;

  beforeAll(async () => {
    world = await startWorld({ dashboard: 'dashboard/dist' });
    world.save(PRIMARY, 'provider = "gguf"\nbackend = "cpu"\n[model]\ndefault = "demo-fox"\n');
    await world.idle();
  }, 120_000);
  afterAll(() => world.close());

  test('shows neither gateways nor pods', async () => {
    const page = await visit(`${world.url}/#/slots/primary/explain`);
    await page.locator('.tree').waitFor();
    await page.evaluate(`location.hash = '#/hardware'`);
    await page.getByRole('heading', { name: 'Providers' }).waitFor();
    expect(await page.locator('.pods, .gateways').count()).toBe(0);
  }, 60_000);
});
